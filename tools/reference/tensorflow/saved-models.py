"""
SavedModels for the backend `tensorflow`, with what TensorFlow itself answers: test/fixtures/saved-models and
test/goldens/saved-models.json. Numbers are as TensorFlow's Python computed them after it had loaded the folder again.

    python tools/reference/tensorflow/saved-models.py
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "test" / "fixtures" / "saved-models"
GOLDEN = ROOT / "test" / "goldens" / "saved-models.json"


def spec(shape, dtype, name):
    return tf.TensorSpec(shape, dtype, name=name)


class Affine(tf.Module):
    """A batched model with variables: two outputs, one a number for each row; and a second signature."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(7)
        self.weights = tf.Variable(rng.normal(size=(3, 2)).astype(np.float32))
        self.bias = tf.Variable(np.float32([0.5, -0.25]))

    @tf.function(input_signature=[spec([None, 3], tf.float32, "x")])
    def serve(self, x):
        y = tf.matmul(x, self.weights) + self.bias
        return {"y": y, "total": tf.reduce_sum(y, axis=1)}

    @tf.function(input_signature=[spec([None, 3], tf.float32, "x")])
    def twice(self, x):
        return {"y": 2 * x}


class Types(tf.Module):
    """Every type that crosses, through an op that changes the value so that a mix-up shows."""

    @tf.function(
        input_signature=[
            spec([None, 2], tf.int32, "i32"),
            spec([None, 2], tf.int64, "i64"),
            spec([None, 2], tf.uint8, "u8"),
            spec([None, 2], tf.bool, "flag"),
            spec([None, 2], tf.string, "text"),
            spec([None, 2], tf.float32, "f32"),
        ]
    )
    def serve(self, i32, i64, u8, flag, text, f32):
        return {
            "i32_out": i32 + 1,
            "i64_out": i64 - 1,
            "u8_out": tf.cast(u8, tf.int32) * 2,
            "flag_out": tf.logical_not(flag),
            "text_out": tf.strings.join([text, text], separator="-"),
            "f32_out": f32 / 3,
        }


class Whole(tf.Module):
    """No batches: sizes that are fixed, and a scalar."""

    @tf.function(input_signature=[spec([2, 3], tf.float32, "table"), spec([], tf.float32, "factor")])
    def serve(self, table, factor):
        return {"scaled": table * factor, "mean": tf.reduce_mean(table)}


class Pick(tf.Module):
    """An op that fails for what a client may send."""

    @tf.function(input_signature=[spec([None, 1], tf.int32, "index")])
    def serve(self, index):
        return {"value": tf.gather(tf.constant([10.0, 20.0, 30.0]), index)}


class Counter(tf.Module):
    """A model that keeps what it was given: its variable has the input's own memory where no copy is made."""

    def __init__(self):
        super().__init__()
        self.last = tf.Variable(tf.zeros([4]), shape=[4])

    @tf.function(input_signature=[spec([4], tf.float32, "x")])
    def serve(self, x):
        before = self.last.read_value()
        with tf.control_dependencies([before]):
            self.last.assign(x)
        return {"before": before}


class Vocabulary(tf.Module):
    """A file next to the graph, which is read when the model is loaded."""

    def __init__(self, path):
        super().__init__()
        self.path = tf.saved_model.Asset(path)
        initializer = tf.lookup.TextFileInitializer(
            self.path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        self.table = tf.lookup.StaticHashTable(initializer, -1)

    @tf.function(input_signature=[spec([None, 1], tf.string, "word")])
    def serve(self, word):
        return {"number": self.table.lookup(word)}


class Sums(tf.Module):
    """A sequence: a state besides the input, and a control input that is a number for each row."""

    @tf.function(
        input_signature=[
            spec([None, 2], tf.int32, "x"),
            spec([None, 2], tf.int32, "sum"),
            spec([None], tf.int32, "start"),
        ]
    )
    def serve(self, x, sum, start):
        after = sum + x
        return {"y": after + 100 * start[:, tf.newaxis], "after": after}


class Refused(tf.Module):
    """Types that no call of the library takes."""

    @tf.function(input_signature=[spec([None, 2], tf.float64, "x")])
    def wide(self, x):
        return {"y": x * 2}

    @tf.function(input_signature=[spec([None, 2], tf.float32, "x")])
    def half(self, x):
        return {"y": tf.cast(x, tf.float16)}

    @tf.function(input_signature=[spec([None, 2], tf.float32, "x")])
    def byte(self, x):
        return {"y": tf.cast(x, tf.uint8)}

    @tf.function(input_signature=[spec(None, tf.float32, "x")])
    def rankless(self, x):
        return {"y": x + 1}


def save(name, module, signatures):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    options = tf.saved_model.SaveOptions(save_debug_info=False)
    tf.saved_model.save(module, str(folder), signatures=signatures, options=options)
    for extra in ("fingerprint.pb",):
        (folder / extra).unlink(missing_ok=True)
    return folder


def save_tagged(name):
    """Of TensorFlow 1: two graphs in one file, distinguished by their tags."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    v1 = tf.compat.v1
    builder = v1.saved_model.Builder(str(folder))
    for tags, factor in ((["serve"], 2.0), (["serve", "tripled"], 3.0)):
        with v1.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 1], name="x")
            weight = v1.get_variable("weight", initializer=tf.constant(2.0))
            y = tf.multiply(x, weight * factor / 2.0, name="y")
            session.run(v1.global_variables_initializer())
            signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
            if tags == ["serve"]:
                builder.add_meta_graph_and_variables(session, tags, {"serving_default": signature}, strip_default_attrs=True)
            else:
                builder.add_meta_graph(tags, {"serving_default": signature}, strip_default_attrs=True)
    builder.save()
    (folder / "fingerprint.pb").unlink(missing_ok=True)


def plain(tensor):
    value = tensor.numpy()
    if value.dtype == object:
        return [one.hex() for one in value.reshape(-1).tolist()]
    if value.dtype == np.int64:
        return [str(one) for one in value.reshape(-1).tolist()]
    if value.dtype == np.float32:
        return [float(np.float64(one)) for one in value.reshape(-1)]
    return value.reshape(-1).tolist()


def judged(name, signature, calls):
    """What the loaded folder answers to each call, in order."""
    function = tf.saved_model.load(str(FOLDER / name)).signatures[signature]
    answers = []
    for inputs in calls:
        outputs = function(**inputs)
        answers.append(
            {
                "inputs": {key: {"shape": list(value.shape), "data": plain(value)} for key, value in inputs.items()},
                "outputs": {key: {"shape": list(value.shape), "data": plain(value)} for key, value in outputs.items()},
            }
        )
    return {"model": name, "signature": signature, "calls": answers}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    affine = Affine()
    save("affine", affine, {"serving_default": affine.serve, "twice": affine.twice})
    plain_ones = {"types": Types(), "whole": Whole(), "pick": Pick(), "counter": Counter(), "sums": Sums()}
    for name, module in plain_ones.items():
        save(name, module, {"serving_default": module.serve})
    words = Path(tempfile.mkdtemp()) / "words.txt"
    words.write_text("ant\nbee\ncat\n")
    vocabulary = Vocabulary(str(words))
    save("vocabulary", vocabulary, {"serving_default": vocabulary.serve})
    refused = Refused()
    save(
        "refused",
        refused,
        {"wide": refused.wide, "half": refused.half, "byte": refused.byte, "rankless": refused.rankless},
    )
    save_tagged("tagged")
    rng = np.random.default_rng(11)
    rows = lambda count: tf.constant(rng.normal(size=(count, 3)).astype(np.float32))
    f32 = lambda values: tf.constant(np.float32(values))
    goldens = [
        judged("affine", "serving_default", [{"x": rows(1)}, {"x": rows(3)}, {"x": rows(4)}]),
        judged("affine", "twice", [{"x": rows(2)}]),
        judged(
            "types",
            "serving_default",
            [
                {
                    "i32": tf.constant([[1, -(2**31)], [2**31 - 2, 0]], tf.int32),
                    "i64": tf.constant([[2**53 + 1, -(2**63) + 1], [2**63 - 1, 0]], tf.int64),
                    "u8": tf.constant([[0, 255], [7, 128]], tf.uint8),
                    "flag": tf.constant([[True, False], [False, False]]),
                    "text": tf.constant([["", "gr\u00fc\u00df dich"], ["\u732b" * 20, b"\xff\x00z"]]),
                    "f32": f32([[1, -0.0], [1e-38, 3e38]]),
                }
            ],
        ),
        judged("whole", "serving_default", [{"table": f32([[1, 2, 3], [4, 5, 6.5]]), "factor": f32(-1.5)}]),
        judged("pick", "serving_default", [{"index": tf.constant([[2], [0]], tf.int32)}]),
        judged("counter", "serving_default", [{"x": f32([1, 2, 3, 4])}, {"x": f32([5, 6, 7, 8])}, {"x": f32([0, 0, 0, 0])}]),
        judged("vocabulary", "serving_default", [{"word": tf.constant([["cat"], ["dog"], ["ant"]])}]),
    ]
    GOLDEN.write_text(json.dumps({"tensorflow": tf.__version__, "goldens": goldens}) + "\n")
    total = sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file())
    print(f"{total} bytes in {FOLDER}")


main()
