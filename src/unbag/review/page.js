"use strict";
// The page of a review. Names from tables are only ever set as text; nothing of them is run.
(() => {
  const $ = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const MOST_BARS = 4;
  const LEAST_BAR = 0.0005;

  // ---- What is shown now.
  let status = null;
  let bag = null;
  let place = 0;
  let choice = 0;
  let asked = null;
  let suggestion = null;
  let before = new Map(); // What each instance was before the last answer, by its place.
  let shownSince = performance.now();
  let isBusy = false;
  let view = "bags";
  const gallery = { name: null, order: "typical", first: 0, instances: [], place: 0 };
  const media = new Map();

  // ---- The server.
  const ask = async (path, body) => {
    const options = { headers: { "X-Unbag-Token": token } };
    if (body !== undefined) {
      options.method = "POST";
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new Error(TEXT.unreachable);
    }
    const found = await answer.json().catch(() => ({ error: answer.statusText }));
    if (!answer.ok) {
      const error = new Error(found.error ?? answer.statusText);
      error.status = answer.status;
      throw error;
    }
    return found;
  };

  const complain = (error, text = TEXT.failed) => {
    $("banner").textContent = error === null ? "" : text(error.message);
    $("banner").hidden = error === null;
    // Nothing is called saved below it.
    if (error !== null) say("");
  };
  const say = (text) => { $("news").textContent = text; };
  const percent = (share) => `${(100 * share).toFixed(share > 0.0995 || share === 0 ? 0 : 1)} %`;

  // ---- Small pieces of the page.
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "class") made.className = value;
      else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children);
    return made;
  };
  const key = (text) => element("kbd", { "aria-hidden": "true" }, text);

  // ---- Sound: one at a time, and none of what is no longer selected.
  let sound = null;
  let soundButton = null;
  const stopSound = () => {
    if (sound !== null) sound.pause();
    if (soundButton !== null) soundButton.classList.remove("playing");
    sound = soundButton = null;
  };
  const play = (source, begin, end, button) => {
    const isSame = soundButton !== null && soundButton === button;
    stopSound();
    if (isSame || source === undefined) return;
    const playing = new Audio(source);
    sound = playing;
    soundButton = button;
    if (button !== null) button.classList.add("playing");
    playing.addEventListener("loadedmetadata", () => {
      playing.currentTime = begin;
      playing.play().catch(() => { if (playing === sound) stopSound(); });
    });
    playing.addEventListener("timeupdate", () => {
      if (playing === sound && playing.currentTime >= end) stopSound();
    });
    playing.addEventListener("ended", () => { if (playing === sound) stopSound(); });
  };
  const playRow = (row, how) => {
    const button = document.querySelector(`[data-row="${row}"] [data-play="${how}"]`)
      ?? document.querySelector(`[data-row="${row}"] [data-play]`);
    if (button !== null) button.click();
  };

  // ---- Pictures and sounds of instances, loaded when they come into view.
  const loadMedium = async (row) => {
    if (!media.has(row)) {
      media.set(row, ask(`api/media/${row}`).catch((error) => {
        media.delete(row);
        return { kind: "gap", name: error.message, reason: TEXT.mediumFailed };
      }));
      if (media.size > 400) media.delete(media.keys().next().value);
    }
    return media.get(row);
  };
  const parsedDrawing = (text) => {
    // Made of numbers by the server; parsed as a picture, in which nothing is run.
    const drawn = new DOMParser().parseFromString(
      text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '), "image/svg+xml");
    const root = drawn.documentElement;
    return root.nodeName === "svg" ? document.importNode(root, true) : null;
  };
  const player = (label, how, source, begin, end) => element("button", {
    type: "button", tabindex: "-1", "data-play": how,
    onclick: (event) => {
      event.stopPropagation();
      play(source, begin, end, event.currentTarget);
    },
  }, label);
  const showMedium = async (holder, row, number) => {
    const found = await loadMedium(row);
    if (!holder.isConnected) return;
    const parts = [];
    const sources = found.sources ?? [];
    if (found.kind === "gap") {
      parts.push(element("p", { class: "gap" }, TEXT.noMedium(found.name, found.reason)));
    }
    const drawing = found.drawing ? parsedDrawing(found.drawing) : null;
    if (drawing !== null && found.kind === "region") {
      const alt = TEXT.picture(number);
      parts.push(element("div", { class: "region" }, element("img", { src: sources[found.place], alt }), drawing));
    } else if (drawing !== null) parts.push(drawing);
    else if (found.kind === "image") {
      parts.push(element("img", { src: sources[found.place], alt: TEXT.picture(number) }));
    }
    if (found.kind === "clip" && found.place !== null) {
      const around = sources[found.place];
      const players = [player(TEXT.segment, "segment", around, found.begin, found.end)];
      if (found.band !== null) {
        players.push(player(TEXT.band, "band", sources[found.band], 0, Infinity));
      }
      players.push(player(TEXT.around, "around", around, 0, Infinity));
      parts.push(element("div", { class: "players" }, ...players));
    } else if (found.kind === "audio") {
      parts.push(element("div", { class: "players" },
        player(TEXT.play, "segment", sources[found.place], 0, Infinity)));
    }
    holder.replaceChildren(...parts);
  };
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      showMedium(entry.target, Number(entry.target.dataset.medium), entry.target.dataset.number);
    }
  }, { rootMargin: "300px" });
  const mediumHolder = (row, number) => {
    const holder = element("div", { class: "medium", "data-medium": row, "data-number": number }, TEXT.loading);
    seen.observe(holder);
    return holder;
  };

  // ---- The tags of the bag.
  const selectedLabel = () => bag?.instances[place]?.choices[choice]?.[0] ?? null;
  const textOf = (label) => bag.tags.find((tag) => tag.label === label)?.text ?? label;
  const showTags = () => {
    const parts = bag.tags.map((tag) => {
      const isPresent = tag.state === "present";
      const state = TEXT.tagState[tag.state];
      const name = element("button", {
        class: "name", type: "button", "aria-label": `${tag.text}, ${state}`, title: tag.members.join(", "),
        onclick: () => selectLabel(tag.members),
      }, tag.text, " ", element("small", { title: TEXT.about(tag.expected) }, `×${tag.expected.toFixed(1)}`));
      const doubt = element("button", {
        type: "button", "aria-label": isPresent ? TEXT.unsure(tag.text) : TEXT.sure(tag.text),
        onclick: () => answer({ kind: "tag", label: tag.label, state: isPresent ? "unknown" : "present" }),
      }, isPresent ? "?" : "✓");
      const strike = element("button", {
        type: "button", "aria-label": TEXT.strike(tag.text),
        onclick: () => answer({ kind: "tag", label: tag.label, state: "absent" }),
      }, "✕");
      const isSelected = tag.members.includes(selectedLabel());
      return element("span", { class: `tag ${tag.state}${isSelected ? " selected" : ""}` },
        name, doubt, ...(tag.state === "absent" ? [] : [strike]));
    });
    if (!bag.tags.some((tag) => tag.state !== "absent")) {
      parts.unshift(element("span", { class: "faint" }, bag.open ? TEXT.anyTag : TEXT.noTag));
    }
    parts.push(element("button", { type: "button", onclick: addTag }, TEXT.addTag, " ", key("t")));
    $("tags").replaceChildren(...parts);
    const aside = bag.instances.filter((each) => each.aside !== null).slice(0, 3);
    const faults = aside.map((each) => TEXT.aside(each.place + 1, each.aside));
    $("impossible").textContent = [...(bag.impossible ? [TEXT.impossible] : []), ...faults].join(" ");
  };

  // ---- Where the instances lie in their recording.
  const showTimeline = () => {
    const line = $("timeline");
    const drawing = bag.timeline === null ? null : parsedDrawing(bag.timeline.drawing);
    line.hidden = drawing === null;
    if (drawing === null) return;
    line.setAttribute("aria-label", TEXT.timeline(bag.timeline.n_instances, bag.timeline.seconds.toFixed(1)));
    for (const mark of drawing.children) {
      mark.addEventListener("click", () => select(Number(mark.dataset.place)));
    }
    line.replaceChildren(drawing);
    markTimeline();
  };
  const markTimeline = () => {
    for (const mark of $("timeline").querySelectorAll("[data-place]")) {
      const each = bag.instances[Number(mark.dataset.place)];
      mark.setAttribute("class", each.place === place ? "selected" : each.pin !== null ? "pinned" : "");
    }
  };

  // ---- The instances of the bag.
  const barsOf = (each) => {
    const bars = each.choices.map(([name, share]) => [name, share]);
    bars.push([TEXT.background, each.background]);
    bars.sort((a, b) => b[1] - a[1]);
    return bars.filter(([, share]) => share > LEAST_BAR).slice(0, MOST_BARS);
  };
  const bar = ([name, share]) => {
    const fill = element("span", { class: "fill" });
    fill.style.width = `${100 * share}%`;
    return element("div", { class: "bar" },
      element("span", { class: "name", title: name }, name),
      element("span", { class: "track" }, fill),
      element("span", { class: "share" }, percent(share)));
  };
  const fillCard = (card, each) => {
    const bars = barsOf(each);
    card.querySelector(".bars").replaceChildren(...bars.map(bar));
    const old = before.get(each.place);
    const verdict = [];
    if (each.pin !== null) {
      verdict.push(element("span", { class: "pin" }, `✓ ${each.pin}`));
      if (each.given) verdict.push(element("span", { class: "faint" }, TEXT.given));
    }
    if (old !== undefined) {
      verdict.push(element("span", { class: "was" }, TEXT.was(old.from, percent(old.probability))));
    }
    card.querySelector(".verdict").replaceChildren(...verdict);
    card.classList.toggle("pinned", each.pin !== null);
    card.classList.toggle("changed", old !== undefined);
    const described = bars.map(([name, share]) => `${name} ${percent(share)}`).join(", ");
    const pinned = each.pin === null ? "" : `, ${TEXT.labelled(each.pin)}`;
    card.setAttribute("aria-label", `${TEXT.instance(each.place + 1)}: ${described}${pinned}`);
  };
  const cardOf = (each) => {
    const number = String(each.place + 1);
    const card = element("li", {
      class: `card${each.media ? " with-medium" : ""}`, tabindex: "0", "data-row": each.row,
      onclick: () => select(each.place),
    }, element("span", { class: "place" }, number));
    if (each.media) card.append(mediumHolder(each.row, number));
    card.append(element("div", { class: "bars" }), element("div", { class: "verdict" }));
    return card;
  };
  const showBag = (found, isNew) => {
    bag = found;
    $("bag-name").textContent = found.id;
    if (isNew) {
      before = new Map();
      seen.disconnect();
      $("instances").replaceChildren(...found.instances.map(cardOf));
    }
    found.instances.forEach((each, i) => fillCard($("instances").children[i], each));
    showTags();
    showTimeline();
    location.hash = `bag/${found.number}`;
  };

  // ---- The labels that can be given to the selected instance.
  const showChoices = () => {
    const each = bag?.instances[place];
    if (view === "gallery" || each === undefined) {
      $("choices").replaceChildren();
      return;
    }
    $("choices").replaceChildren(...each.choices.map(([name, share], i) => {
      const classes = [i === choice ? "selected" : "", name === each.pin ? "chosen" : ""];
      return element("button", {
        type: "button", class: classes.join(" ").trim(), title: name,
        "aria-label": `${i + 1}: ${name}, ${percent(share)}`, onclick: () => label(name),
      }, element("span", { class: "name" }, key(String(i + 1)), " ", name), element("small", {}, percent(share)));
    }));
  };
  const action = (id, text, shortcut, run, isMain = false) => element("button", {
    type: "button", id: `do-${id}`, class: isMain ? "main" : "",
    onclick: () => { run(); focusSelected(); },
  }, text, " ", key(shortcut));
  const showActions = () => {
    const common = [action("undo", TEXT.undo, "u", undo)];
    const own = view === "gallery" ? [] : [
      action("background", TEXT.background, "b", () => label(status.background)),
      action("other", TEXT.other, "/", labelByName),
      action("class", TEXT.newClass, "c", newClass),
      action("strike", TEXT.strikeKey, "x", strike),
      action("accept", TEXT.accept, "a", accept),
      action("skip", TEXT.skip, "s", skip),
      action("next", TEXT.next, "n", next, true),
    ];
    $("actions").replaceChildren(...common, ...own);
  };

  // ---- Moving.
  const measure = () => {
    const style = document.documentElement.style;
    style.setProperty("--head", `${document.querySelector(".head").offsetHeight}px`);
    style.setProperty("--pad", `${$("pad").offsetHeight}px`);
  };
  const focusSelected = () => {
    if (document.querySelector("dialog[open]")) return;
    const cards = view === "gallery" ? $("gallery").children : $("instances").children;
    const card = cards[view === "gallery" ? gallery.place : place];
    if (card === undefined) return;
    card.focus({ preventScroll: true });
    // What has just been shown may be higher or lower, and no observer has seen it yet.
    measure();
    card.scrollIntoView({ block: "nearest" });
  };
  const select = (i, wanted = 0) => {
    if (bag === null || bag.instances.length === 0) return;
    const isOther = i !== place;
    if (isOther) stopSound();
    place = Math.max(0, Math.min(i, bag.instances.length - 1));
    choice = wanted;
    if (isOther) shownSince = performance.now();
    for (const [k, card] of [...$("instances").children].entries()) {
      card.setAttribute("aria-current", String(k === place));
    }
    showChoices();
    showTags();
    markTimeline();
    focusSelected();
  };
  const selectLabel = (names) => {
    const choices = bag.instances[place]?.choices ?? [];
    const found = choices.findIndex(([label]) => names.includes(label));
    if (found < 0) return;
    choice = found;
    showChoices();
    showTags();
  };
  const moveChoice = (step) => {
    const count = bag?.instances[place]?.choices.length ?? 0;
    if (count === 0) return;
    choice = (choice + step + count) % count;
    showChoices();
    showTags();
  };
  let latest = 0; // What was asked for last: late answers of what was asked before are dropped.
  const openBag = async (number, wanted = 0, why = null, about = null) => {
    stopSound();
    const mine = latest += 1;
    const found = await ask(`api/bags/${number}`);
    if (mine !== latest) return;
    asked = why === null ? null : { why, place: wanted, about };
    suggestion = null;
    showWhy();
    showBag(found, true);
    place = -1;
    select(wanted);
    if (about !== null) selectLabel([about]);
    shownSince = performance.now();
    showNext();
  };
  const showWhy = () => {
    const about = asked?.about ?? null;
    const reply = (text, state, shortcut) => element("button", {
      type: "button", id: `tag-${state}`, onclick: () => answerTag(state),
    }, text, " ", key(shortcut));
    const parts = about === null
      ? [asked === null ? "" : TEXT.asked[asked.why] ?? asked.why]
      : [TEXT.isThere(about), reply(TEXT.yes, "present", "y"), reply(TEXT.no, "absent", "x")];
    $("why").replaceChildren(...parts);
  };
  const answerTag = async (state) => {
    const about = asked?.about ?? null;
    if (about === null) return;
    if (await answer({ kind: "tag", label: about, state, asked: asked.why }) === null) return;
    select(place);
    showNext();
  };
  const next = async () => {
    try {
      const after = bag === null ? "" : `?after=${bag.number}`;
      const { question, surveyed } = await ask(`api/next${after}`);
      if (question === null) {
        say(surveyed ? TEXT.finished : TEXT.surveying);
        if (bag === null && status.bags > 0) await openBag(0);
        return;
      }
      say("");
      await openBag(question.bag, question.place, question.asked, question.label);
    } catch (error) {
      complain(error);
    }
  };
  const showNext = () => {
    const button = $("do-next");
    if (button !== null) button.classList.toggle("main", suggestion === null || suggestion.bag !== bag?.number);
  };

  // ---- Answers. Nothing is shown as answered before the server has it on disk.
  const answer = async (given, told) => {
    if (isBusy || (bag === null && given.kind !== "undo" && given.bag === undefined)) return null;
    isBusy = true;
    const seconds = (performance.now() - shownSince) / 1000;
    try {
      const sent = { seconds, ...given };
      if (sent.bag === undefined && given.kind !== "undo") sent.bag = bag.number;
      // Only the instance that was asked for: the others were chosen by the person.
      if (view === "bags" && asked !== null && asked.about === null && given.instance === asked.place && given.kind !== "skip") sent.asked = asked.why;
      const found = await ask("api/answers", sent);
      complain(null);
      status = { ...status, ...found.status };
      showStatus();
      shownSince = performance.now();
      // Whoever has gone on meanwhile stays there.
      const isHere = view === "bags" && found.bag !== null && (given.kind === "undo" || found.bag.number === bag.number);
      if (isHere) before = new Map(found.changed.map((each) => [each.place, each]));
      suggestion = found.next ?? null;
      if (given.kind === "tag" && asked?.about === given.label) {
        asked = null;
        showWhy();
      }
      if (isHere) {
        const isNew = bag === null || found.bag.number !== bag.number;
        showBag(found.bag, isNew);
        const others = found.changed.filter((each) => each.place !== given.instance).length;
        const text = found.answer === null ? TEXT.same : told ?? TEXT.savedTag(textOf(given.label), TEXT.tagState[given.state]);
        say(`${text}${found.answer === null ? "" : TEXT.changed(others)}`);
        if (isNew) place = -1;
      }
      return found;
    } catch (error) {
      complain(error, TEXT.notSaved);
      if (error.status === 409) await refreshBag();
      return null;
    } finally {
      isBusy = false;
    }
  };
  const refreshBag = async () => {
    const old = bag;
    if (old === null) return;
    try {
      const found = await ask(`api/bags/${old.number}`);
      if (bag !== old) return;
      showBag(found, false);
      select(place, choice);
    } catch (error) {
      complain(error);
    }
  };
  const moveOn = () => {
    const isHere = suggestion !== null && suggestion.bag === bag.number;
    if (isHere) select(suggestion.place);
    else {
      select(place);
      const isDone = bag.instances.every((each) => each.pin !== null);
      say(`${$("news").textContent} ${isDone ? TEXT.allLabelled : TEXT.goOn}`);
    }
    showNext();
  };
  const label = async (name) => {
    if (bag === null || bag.instances.length === 0) return false;
    const found = await answer({ kind: "label", instance: place, label: name }, TEXT.saved(name));
    if (found !== null) moveOn();
    return found !== null;
  };
  const labelAt = (i) => {
    const found = bag?.instances[place]?.choices[i];
    if (found !== undefined) label(found[0]);
  };
  const strike = async () => {
    const name = selectedLabel();
    if (asked?.about && (name === null || name === asked.about)) {
      await answerTag("absent");
      return;
    }
    if (name === null) return;
    if (await answer({ kind: "tag", label: name, state: "absent" }) !== null) select(place);
  };
  const doubt = async () => {
    const name = selectedLabel();
    if (name === null) return;
    if (await answer({ kind: "tag", label: name, state: "unknown" }) !== null) select(place);
  };
  const accept = async () => {
    if (bag === null) return;
    const found = await answer({ kind: "accept", revision: bag.revision }, TEXT.accepted);
    if (found !== null) moveOn();
  };
  const skip = async () => {
    if (bag === null) return;
    const instance = bag.instances.length === 0 ? {} : { instance: place };
    const wanted = asked?.about ? { label: asked.about } : instance;
    if (await answer({ kind: "skip", ...wanted }, TEXT.skipped) !== null) await next();
  };
  const undo = async () => {
    const last = status?.last ?? null;
    if (last === null) {
      say(TEXT.nothingToUndo);
      return;
    }
    const found = await answer({ kind: "undo", answer: last.answer }, TEXT.undone);
    if (found === null) return;
    if (view === "gallery") await openGallery();
    else if (found.bag !== null) select(found.answered[0] ?? Math.max(place, 0));
  };

  // ---- Choosing by name. The dialog stays until `take` has what was chosen: no text is lost.
  const pick = ({ title, names, take, isFree = false, search = null }) => {
    const [dialog, input, list] = [$("picker"), $("picker-text"), $("picker-list")];
    $("picker-title").textContent = title;
    $("picker-error").textContent = "";
    $("picker-ok").textContent = TEXT.ok;
    $("picker-cancel").textContent = TEXT.cancel;
    input.value = "";
    list.hidden = isFree;
    let found = [];
    let at = 0;
    let shown = null; // The last search.
    const mark = () => {
      [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
      list.children[at]?.scrollIntoView({ block: "nearest" });
    };
    const matching = (part) => {
      const starts = names.filter((name) => name.toLowerCase().startsWith(part));
      const holds = names.filter((name) => !starts.includes(name) && name.toLowerCase().includes(part));
      return [...starts, ...holds].map((name) => ({ text: name, value: name }));
    };
    const show = () => {
      $("picker-error").textContent = "";
      if (isFree) return;
      const part = input.value.trim().toLowerCase();
      const searching = (async () => (search === null ? matching(part) : search(part)))().catch((error) => {
        if (searching === shown) $("picker-error").textContent = TEXT.failed(error.message);
        return [];
      }).then((matches) => {
        // Late matches of an earlier text are dropped.
        if (searching !== shown) return;
        found = matches;
        at = 0;
        list.replaceChildren(...found.slice(0, 200).map((each, i) => element("li", {
          role: "option", onclick: () => finish(each.value),
        }, each.text)));
        mark();
      });
      shown = searching;
    };
    const chosen = async () => {
      if (isFree) return input.value.trim() || null;
      // What is listed may still match an earlier text.
      for (let waited; waited !== shown;) await (waited = shown);
      return found[at]?.value ?? null;
    };
    const finish = async (clicked = null) => {
      const value = clicked ?? await chosen();
      if (value === null || !dialog.open) return;
      if (await take(value)) dialog.close();
      else $("picker-error").textContent = $("banner").textContent;
    };
    const onKey = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step === undefined || found.length === 0) return;
      event.preventDefault();
      at = (at + step + found.length) % found.length;
      mark();
    };
    const onSubmit = (event) => { event.preventDefault(); finish(); };
    const onCancel = () => dialog.close();
    const form = dialog.querySelector("form");
    input.addEventListener("input", show);
    input.addEventListener("keydown", onKey);
    form.addEventListener("submit", onSubmit);
    $("picker-cancel").addEventListener("click", onCancel);
    dialog.addEventListener("close", () => {
      input.removeEventListener("input", show);
      input.removeEventListener("keydown", onKey);
      form.removeEventListener("submit", onSubmit);
      $("picker-cancel").removeEventListener("click", onCancel);
      focusSelected();
    }, { once: true });
    show();
    dialog.showModal();
    input.focus();
  };
  const withBackground = () => [...status.classes, ...(status.classes.includes(status.background) ? [] : [status.background])];
  const labelByName = () => pick({ title: TEXT.pickLabel, names: withBackground(), take: label });
  const addTag = () => {
    const has = new Set(bag.tags.filter((tag) => tag.state === "present").map((tag) => tag.label));
    const names = status.classes.filter((name) => !has.has(name));
    const take = async (name) => {
      const isSaved = await answer({ kind: "tag", label: name, state: "present" }) !== null;
      if (isSaved) select(place);
      return isSaved;
    };
    pick({ title: TEXT.pickTag, names, take });
  };
  const newClass = () => {
    const take = async (name) => {
      const wanted = bag.instances.length === 0 ? {} : { instance: place };
      const found = await answer({ kind: "class", label: name, ...wanted }, TEXT.savedClass(name));
      if (found !== null) moveOn();
      return found !== null;
    };
    pick({ title: TEXT.nameClass, names: [], isFree: true, take });
  };
  const findBag = () => {
    const search = async (part) => {
      const found = await ask(`api/bags?name=${encodeURIComponent(part)}`);
      return found.bags.map((each) => ({ text: each.id, value: each.number }));
    };
    const take = async (number) => {
      try {
        setView("bags");
        await openBag(number);
        return true;
      } catch (error) {
        complain(error);
        return false;
      }
    };
    pick({ title: TEXT.pickBag, names: [], search, take });
  };

  // ---- The gallery of a class.
  const openGallery = async (name = gallery.name ?? status.classes[0], order = gallery.order, first = 0) => {
    const query = new URLSearchParams({ class: name, order, first: String(first) });
    const mine = latest += 1;
    const found = await ask(`api/gallery?${query}`);
    if (mine !== latest) return;
    Object.assign(gallery, { name, order, first, instances: found.instances, place: 0 });
    stopSound();
    seen.disconnect();
    const names = withBackground();
    $("gallery-class").replaceChildren(...names.map((each) => element("option", { value: each }, each)));
    $("gallery-class").value = name;
    for (const each of ["typical", "doubtful"]) $(each).setAttribute("aria-pressed", String(each === order));
    $("gallery").replaceChildren(...found.instances.map(galleryCard));
    if (found.instances.length === 0) $("gallery").append(element("li", { class: "faint" }, TEXT.none));
    showGalleryFacts(found);
    selectInGallery(0);
  };
  const showGalleryFacts = (found) => {
    $("precision").textContent = TEXT.precision(found.precision, found.count);
    $("gallery-back").disabled = gallery.first === 0;
    $("gallery-on").disabled = gallery.first + found.instances.length >= found.count;
  };
  const refreshGallery = async () => {
    // What stands there stays where it is, so that nobody hits the wrong one.
    const { name, order, first } = gallery;
    const query = new URLSearchParams({ class: name, order, first: String(first) });
    const rows = gallery.instances.map((each) => each.row).join(",");
    const found = await ask(`api/gallery?${query}&rows=${rows}`);
    if (gallery.name !== name || gallery.order !== order || gallery.first !== first) return;
    showGalleryFacts(found);
    gallery.instances.forEach((each, i) => {
      const pin = found.pins[i] ?? null;
      if (each.pin === pin) return;
      each.pin = pin;
      $("gallery").children[i].replaceWith(galleryCard(each, i));
      if (i === gallery.place) selectInGallery(i);
    });
  };
  const galleryCard = (each, i) => {
    const number = `${each.id}, ${each.place + 1}`;
    const card = element("li", {
      class: `card${each.media ? " with-medium" : ""}${each.pin === null ? "" : " pinned"}`,
      tabindex: "0", "data-row": each.row, onclick: () => selectInGallery(i),
      "aria-label": `${number}: ${gallery.name} ${percent(each.probability)}${each.pin === null ? "" : `, ${TEXT.labelled(each.pin)}`}`,
    });
    const open = element("button", {
      type: "button", onclick: async (event) => {
        event.stopPropagation();
        setView("bags");
        await openBag(each.bag, each.place);
      },
    }, each.id);
    card.append(element("div", { class: "row" }, open, element("span", { class: "share" }, percent(each.probability))));
    if (each.media) card.append(mediumHolder(each.row, number));
    card.append(element("div", { class: "judge" },
      element("button", { type: "button", onclick: () => judge(i, true) }, TEXT.right, " ", key("y")),
      element("button", { type: "button", onclick: () => judge(i, false) }, TEXT.wrong, " ", key("/"))));
    card.append(element("div", { class: "verdict" },
      ...(each.pin === null ? [] : [element("span", { class: "pin" }, `✓ ${each.pin}`)])));
    return card;
  };
  const selectInGallery = (i) => {
    if (i !== gallery.place) {
      stopSound();
      shownSince = performance.now();
    }
    gallery.place = Math.max(0, Math.min(i, gallery.instances.length - 1));
    [...$("gallery").children].forEach((card, k) => card.setAttribute("aria-current", String(k === gallery.place)));
    focusSelected();
  };
  const judge = (i, isRight) => {
    const take = (name) => judgeAs(i, name);
    if (isRight) take(gallery.name);
    else pick({ title: TEXT.pickRight, names: withBackground().filter((other) => other !== gallery.name), take });
  };
  const judgeAs = async (i, name) => {
    const each = gallery.instances[i];
    if (each === undefined) return true;
    const found = await answer({ kind: "label", bag: each.bag, instance: each.place, label: name });
    if (found === null) return false;
    each.pin = name;
    $("gallery").children[i].replaceWith(galleryCard(each, i));
    say(TEXT.saved(name));
    selectInGallery(i + 1);
    await refreshGallery();
    return true;
  };
  const setView = (name) => {
    view = name;
    $("bag-view").hidden = name !== "bags";
    $("gallery-view").hidden = name !== "gallery";
    $("to-bags").setAttribute("aria-pressed", String(name === "bags"));
    $("to-gallery").setAttribute("aria-pressed", String(name === "gallery"));
    showActions();
    showChoices();
  };
  const toGallery = async () => {
    try {
      const name = selectedLabel() ?? undefined;
      setView("gallery");
      await openGallery(gallery.name ?? name);
    } catch (error) {
      complain(error);
    }
  };
  const toBags = async () => {
    setView("bags");
    if (bag === null) await next();
    else await openBag(bag.number, place);
  };

  // ---- How far the review has got.
  const showStatus = () => {
    const parts = [TEXT.progress(status)];
    if (status.wrong) {
      const { share, low, high } = status.wrong;
      parts.push(TEXT.wrongShare(percent(share), percent(low), percent(high)));
    }
    if (status.coming) {
      parts.push(TEXT.gain(status.coming, status.gain.toFixed(1), status.change));
    }
    parts.push(...status.notes);
    const fit = status.refit;
    parts.push(fit.error ?? (fit.running ? TEXT.fitProgress(percent(fit.done)) : TEXT.newAnswers(fit.new, fit.every)));
    $("refit").disabled = fit.running || fit.new === 0;
    $("refit").textContent = fit.running ? TEXT.fitting : TEXT.refit;
    $("fitting").classList.toggle("on", fit.running);
    $("fitting").firstElementChild.style.width = fit.running ? `${100 * fit.done}%` : "0";
    $("progress").textContent = parts.join(" · ");
  };
  const refreshStatus = async () => {
    const old = status;
    const found = await ask("api/status");
    status = found;
    $("title").textContent = found.title || "unbag";
    document.title = `${found.title} · unbag review`;
    showStatus();
    if (old === null) return;
    if (found.model !== old.model) say(TEXT.learnt);
    // Or somebody has answered elsewhere.
    else if (found.answers === old.answers || isBusy) return;
    if (view === "bags") await refreshBag();
    else await refreshGallery();
  };
  let timer = null;
  const watch = async () => {
    clearTimeout(timer);
    try {
      await refreshStatus();
      if ($("banner").textContent === TEXT.failed(TEXT.unreachable)) complain(null);
    } catch (error) {
      // That an answer was not saved stays there.
      if ($("banner").hidden) complain(error);
    }
    const isMoving = !status?.surveyed || status?.refit.running;
    timer = setTimeout(watch, isMoving ? 1000 : 8000);
  };
  const refit = async () => {
    try {
      await ask("api/refit", {});
      await watch();
    } catch (error) {
      complain(error);
    }
  };

  // ---- Keys.
  const showKeys = () => {
    $("keys-list").replaceChildren(...TEXT.keys.flatMap(([name, what]) => [
      element("dt", {}, key(name)), element("dd", {}, what),
    ]));
    $("keys").showModal();
  };
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    const target = event.target;
    if (["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName)) return;
    if (target.tagName === "BUTTON" && [" ", "Enter"].includes(event.key)) return;
    const run = view === "gallery" ? galleryKey(event.key) : bagKey(event.key);
    if (run === undefined) return;
    event.preventDefault();
    run();
  };
  const bagKey = (name) => {
    if (/^[1-9]$/.test(name)) return () => labelAt(Number(name) - 1);
    const row = bag?.instances[place]?.row;
    return {
      "/": labelByName, " ": () => playRow(row, "segment"), f: () => playRow(row, "band"),
      r: () => playRow(row, "around"), ArrowDown: () => select(place + 1),
      ArrowUp: () => select(place - 1), ArrowRight: () => moveChoice(1),
      ArrowLeft: () => moveChoice(-1), Enter: () => labelAt(choice), u: undo,
      b: () => label(status.background), x: strike, y: () => answerTag("present"), m: doubt, t: addTag, s: skip, n: next,
      a: accept, c: newClass, g: toGallery, "?": showKeys,
    }[name];
  };
  const galleryKey = (name) => {
    const i = gallery.place;
    const row = gallery.instances[i]?.row;
    return {
      ArrowRight: () => selectInGallery(i + 1), ArrowDown: () => selectInGallery(i + 1),
      ArrowLeft: () => selectInGallery(i - 1), ArrowUp: () => selectInGallery(i - 1),
      " ": () => playRow(row, "segment"), f: () => playRow(row, "band"), r: () => playRow(row, "around"),
      y: () => judge(i, true), Enter: () => judge(i, true), "/": () => judge(i, false),
      b: () => judgeAs(i, status.background), u: undo, g: toBags, "?": showKeys,
    }[name];
  };

  // ---- The beginning.
  const words = {
    "to-bags": TEXT.bags, "to-gallery": TEXT.gallery, find: TEXT.find, refit: TEXT.refit,
    "keys-title": TEXT.keysTitle, "keys-close": TEXT.close, "class-label": TEXT.className,
    typical: TEXT.typical, doubtful: TEXT.doubtful, "gallery-back": TEXT.back, "gallery-on": TEXT.more,
  };
  for (const [id, text] of Object.entries(words)) $(id).textContent = text;
  const labels = { tags: TEXT.tags, instances: TEXT.instances, choices: TEXT.choices, actions: TEXT.actions, help: TEXT.help };
  for (const [id, text] of Object.entries(labels)) $(id).setAttribute("aria-label", text);
  const page = 24;
  $("to-bags").addEventListener("click", toBags);
  $("to-gallery").addEventListener("click", toGallery);
  $("find").addEventListener("click", findBag);
  $("refit").addEventListener("click", refit);
  $("help").addEventListener("click", showKeys);
  $("gallery-class").addEventListener("change", () => openGallery($("gallery-class").value, gallery.order));
  for (const order of ["typical", "doubtful"]) {
    $(order).addEventListener("click", () => openGallery(gallery.name, order));
  }
  $("gallery-back").addEventListener("click", () => openGallery(gallery.name, gallery.order, Math.max(0, gallery.first - page)));
  $("gallery-on").addEventListener("click", () => openGallery(gallery.name, gallery.order, gallery.first + page));
  document.addEventListener("keydown", onKey);
  const observer = new ResizeObserver(measure);
  for (const each of [document.querySelector(".head"), $("pad")]) observer.observe(each);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stopSound();
    else shownSince = performance.now();
  });
  const begin = async () => {
    const wanted = /^#bag\/(\d+)$/.exec(location.hash);
    await watch();
    if (status === null) return;
    setView("bags");
    try {
      if (wanted !== null) await openBag(Number(wanted[1]));
      else {
        for (let tries = 0; !status.surveyed && tries < 20; tries += 1) {
          say(TEXT.surveying);
          await new Promise((resolve) => { setTimeout(resolve, 200); });
          await refreshStatus();
        }
        await next();
      }
    } catch (error) {
      complain(error);
    }
  };
  begin();
})();
