"""Files of other tools, written by hand after the examples and sources of these tools."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

EMBEDDINGS = """\
file_path,start,end,embedding
site/dawn.wav,0.0,3.0,"0.25,-1.5,2.0"
site/dusk.wav,0.0,3.0,"1e-3,0.0,1.0"
site/dawn.wav,3.0,4.5,"0.5,0.5,0.5"
"""

RESULTS = """\
Start (s),End (s),Scientific name,Common name,Confidence,File
0.0,3.0,Troglodytes troglodytes,Eurasian Wren,0.9312,site/dawn.wav
3.0,6.0,Strix aluco,Tawny Owl,0.3021,site/dawn.wav
6.0,9.0,Troglodytes troglodytes,Eurasian Wren,0.2711,site/dawn.wav
0.0,3.0,Strix aluco,Tawny Owl,0.8800,site/dusk.wav
"""

# What BirdNET-Analyzer writes for Raven: nothing was found in the second recording.
BIRDNET_RAVEN = (
    "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\tLow Freq (Hz)\tHigh Freq (Hz)\t"
    "Common Name\tSpecies Code\tConfidence\tBegin Path\tFile Offset (s)\n"
    "1\tSpectrogram 1\t1\t3.0\t6.0\t0\t15000\tTawny Owl\ttawowl1\t0.8000\tsite/dawn.wav\t3.0\n"
    "1\tSpectrogram 1\t1\t0\t3\t0\t15000\tnocall\tnocall\t1.0\tsite/dusk.wav\t0\n"
)

# As Raven Pro saves it: each selection once for every view, measurements, an annotation.
RAVEN = (
    "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\tLow Freq (Hz)\tHigh Freq (Hz)\t"
    "Delta Time (s)\tAvg Power Density (dB FS/Hz)\tAnnotation\tnotes\n"
    "1\tWaveform 1\t1\t6.709509878\t15.096397225\t1739.012\t3798.813\t8.3869\t\tBirb\t\n"
    "1\tSpectrogram 1\t1\t6.709509878\t15.096397225\t1739.012\t3798.813\t8.3869\t-86.96\tBirb\tx\n"
    "2\tSpectrogram 1\t1\t105.364660347\t110.176716085\t1012.302\t5504.394\t4.8121\t-80\t\t\n"
)

AUDACITY = (
    "2.150000\t2.150000\tpoint label at 2.15 seconds\n"
    "3.400000\t6.100000\tregion\n"
    "\\\t500.000000\t2000.000000\n"
    "7.000000\t8.000000\t\n"
)

FRAME = """\
file,start_time,end_time,wren,owl
a.wav,0,3,1,0
a.wav,3,6,1.0,
b.wav,0,3,False,False
b.wav,3,6,True,True
"""

XENO_CANTO = {
    "numRecordings": "3", "numSpecies": "2", "page": 1, "numPages": 1,
    "recordings": [
        {"id": "270409", "gen": "Cygnus", "sp": "atratus", "ssp": "", "q": "B", "also": [""],
         "file-name": "XC270409-cygnus_atratus.mp3", "length": "0:12"},
        {"id": "477551", "gen": "Troglodytes", "sp": "troglodytes", "q": "A",
         "also": ["Turdus merula", "", "Turdus merula", "Troglodytes troglodytes"]},
        {"id": "5", "gen": "Sonus", "sp": "naturalis", "also": ["Turdus merula"]},
    ],
}  # fmt: skip

LABEL_STUDIO_BOXES = [{
    "id": 1, "project": 83,
    "data": {"image": "https://example.com/moon.jpg"},
    "annotations": [{
        "id": "1001", "was_cancelled": False, "ground_truth": False,
        "result": [{
            "from_name": "tag", "id": "Dx_aB91ISN", "source": "$image", "to_name": "img",
            "type": "rectanglelabels", "original_width": 600, "original_height": 403,
            "value": {"height": 10.0, "rectanglelabels": ["Moonwalker"], "rotation": 0,
                      "width": 12.5, "x": 50.0, "y": 5.0},
        }],
    }],
    "predictions": [{"model_version": "model 1", "result": []}],
}]  # fmt: skip


def audio_task(medium, *annotations):
    return {"id": 7, "data": {"audio": medium}, "annotations": list(annotations), "predictions": []}


def segment(identity, start, end, *labels):
    value = {"start": start, "end": end, "channel": 0, "labels": list(labels)}
    return {"original_length": 18, "id": identity, "from_name": "label", "to_name": "audio",
            "type": "labels", "value": value}  # fmt: skip


COCO = {
    "info": {"year": 2017},
    "images": [
        {"id": 242287, "width": 426, "height": 640, "file_name": "a.jpg"},
        {"id": 245915, "width": 640, "height": 480, "file_name": "b.jpg"},
        {"id": 3, "width": 640, "height": 480, "file_name": "empty.jpg"},
    ],
    "annotations": [
        {"id": 125686, "category_id": 0, "iscrowd": 0, "image_id": 242287, "area": 4.0,
         "bbox": [19.23, 383.18, 314.5, 244.46], "segmentation": [[164.81, 417.51]]},
        {"id": 1409619, "category_id": 0, "iscrowd": 0, "image_id": 245915, "bbox": [1, 2, 3, 4]},
        {"id": 1410165, "category_id": 1, "iscrowd": 1, "image_id": 245915, "bbox": [3, 81, 4, 5]},
    ],
    "categories": [
        {"supercategory": "speaker", "id": 0, "name": "echo"},
        {"supercategory": "speaker", "id": 1, "name": "echo dot"},
    ],
}  # fmt: skip


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def write_database(folder, annotations=(), windows=None, embeddings=None):
    """Write what perch-hoplite's ParquetDB.commit writes: the same files, columns and types."""
    folder.mkdir(exist_ok=True)
    windows = windows or [(0, 0, [0.0, 5.0]), (1, 0, [5.0, 10.0]), (2, 1, [0.0, 5.0])]
    tables = {
        "deployments": (["id", "name", "project", "latitude", "longitude"],
                        [(0, "north", "p", None, None), (1, "south", "p", None, None)]),
        "recordings": (["id", "filename", "datetime", "deployment_id"],
                       [(0, "dawn.wav", None, 0), (1, "dawn.wav", None, 1)]),
        "windows": (["id", "recording_id", "offsets"], windows),
        "annotations": (["id", "recording_id", "offsets", "label", "label_type", "provenance"],
                        [(number, *row, "me") for number, row in enumerate(annotations)]),
    }  # fmt: skip
    for name, (columns, rows) in tables.items():
        cells = list(zip(*rows, strict=True)) or [()] * len(columns)
        table = dict(zip(columns, map(list, cells), strict=True))
        pq.write_table(pa.table(table), folder / f"{name}.parquet")
    (folder / "embeddings").mkdir(exist_ok=True)
    parts = embeddings or [[(2, [5.0, 6.0])], [(0, [1.0, 2.0]), (1, [3.0, 4.0]), (9, [7.0, 8.0])]]
    for number, part in enumerate(parts):
        ids, vectors = zip(*part, strict=True)
        table = pa.table({"id": list(ids), "embedding": list(vectors)})
        pq.write_table(table, folder / "embeddings" / f"4f{number}-0.parquet")
    return folder


def write_birdset(path, rows, names=("gcrfin", "whcspa"), **columns):
    features = {"ebird_code_multilabel": {
        "feature": {"names": list(names), "_type": "ClassLabel"}, "_type": "Sequence"}}  # fmt: skip
    kept = {"info": {"features": features}}
    recordings, starts, ends, labels = map(list, zip(*rows, strict=True))
    kind = pa.list_(pa.int64()) if names else None
    table = pa.table({
        "filepath": recordings, "start_time": pa.array(starts, pa.float64()),
        "end_time": pa.array(ends, pa.float64()),
        "ebird_code_multilabel": pa.array(labels, kind), **columns,
    })  # fmt: skip
    if names:
        table = table.replace_schema_metadata({"huggingface": json.dumps(kept)})
    pq.write_table(table, path)
    return path


def samples(folder):
    """One file of each format, by its name."""
    text = {
        "birdnet-embeddings": ("e.csv", EMBEDDINGS),
        "birdnet-detections": ("results.csv", RESULTS),
        "opensoundscape": ("f.csv", FRAME),
        "raven": ("dawn.selections.txt", RAVEN),
        "xeno-canto": ("x.json", XENO_CANTO),
        "coco": ("c.json", COCO),
        "label-studio": ("l.json", LABEL_STUDIO_BOXES),
        "audacity": ("labels.txt", AUDACITY),
    }
    found = {name: write(folder / file, content) for name, (file, content) in text.items()}
    found["hoplite"] = write_database(folder / "db")
    found["birdset"] = write_birdset(folder / "b.parquet", [("a.ogg", 0.0, 5.0, [0])])
    return found
