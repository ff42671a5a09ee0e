"use strict";
(() => {
  // Each picture or sound is in the page once, however many instances share it.
  const media = JSON.parse(document.getElementById("media").textContent);
  for (const shown of document.querySelectorAll("[data-media]")) {
    shown.src = media[Number(shown.dataset.media)];
  }

  // One sound at a time: the next one stops it.
  let playing = null;
  for (const button of document.querySelectorAll("[data-play]")) {
    button.addEventListener("click", () => {
      if (playing !== null) playing.pause();
      const sound = new Audio(media[Number(button.dataset.play)]);
      const end = Number(button.dataset.end ?? Infinity);
      playing = sound;
      sound.addEventListener("loadedmetadata", () => {
        sound.currentTime = Number(button.dataset.begin ?? 0);
        sound.play();
      });
      sound.addEventListener("timeupdate", () => {
        if (sound.currentTime >= end) sound.pause();
      });
    });
  }

  // In a time line, each mark leads to its instance.
  for (const mark of document.querySelectorAll(".timeline [data-place]")) {
    mark.addEventListener("click", () => {
      const bag = mark.closest(".bag");
      const shown = bag.querySelector(`li[data-place="${mark.dataset.place}"]`);
      if (shown !== null) shown.focus();
    });
  }

  // Tables sort by the column whose heading is pressed; pressed again, the other way round.
  const valueOf = (row, column, numeric) => {
    const text = row.cells[column].textContent.trim();
    if (!numeric) return text.toLowerCase();
    const value = parseFloat(text);
    return Number.isNaN(value) ? -Infinity : value;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = heading.querySelector("button");
      button.addEventListener("click", () => {
        const numeric = "numeric" in button.dataset;
        const before = heading.getAttribute("aria-sort");
        const descending = before === "none" ? numeric : before === "ascending";
        for (const other of headings) other.setAttribute("aria-sort", "none");
        heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows];
        rows.sort((first, second) => {
          const a = valueOf(first, column, numeric);
          const b = valueOf(second, column, numeric);
          const order = a < b ? -1 : a > b ? 1 : 0;
          return descending ? -order : order;
        });
        body.append(...rows);
      });
    });
  }

  // Bags are shown by class and by part of their name.
  const byClass = document.getElementById("class-filter");
  const byName = document.getElementById("bag-filter");
  const bags = [...document.querySelectorAll("#bag-list .bag")];
  const filter = () => {
    const name = byName.value.toLowerCase();
    let shown = 0;
    for (const bag of bags) {
      const hasClass = !byClass.value || JSON.parse(bag.dataset.classes).includes(byClass.value);
      bag.hidden = !(hasClass && bag.dataset.id.toLowerCase().includes(name));
      shown += bag.hidden ? 0 : 1;
    }
    document.getElementById("filtered").textContent = `${shown} of ${bags.length}`;
  };
  byClass.addEventListener("change", filter);
  byName.addEventListener("input", filter);
  document.querySelector(".filter").addEventListener("submit", (event) => event.preventDefault());
  filter();

  // Printed, every bag is open.
  window.addEventListener("beforeprint", () => bags.forEach((bag) => { bag.open = true; }));
})();
