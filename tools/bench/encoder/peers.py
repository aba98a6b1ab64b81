"""
The sides of Python: sentence-transformers on torch, and OpenVINO on the ONNX file.

    python peers.py MODEL_DIR --side torch|openvino --precision f32|bf16 --threads 2

Reads a line {"calls": [[text, ...], ...]} at a time, embeds the calls one after the other, and answers with a line
{"seconds", "first": the embedding of the first text}. The first line says that the model is loaded: {"version"}.
Both sort the texts of a call by length, and pad batches of 32 to their longest text.
"""

import argparse
import json
import os
import sys
import time

BATCH = 32


def torch_embedder(folder, precision, threads):
    import sentence_transformers
    import torch

    torch.set_num_threads(threads)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = sentence_transformers.SentenceTransformer(folder, device="cpu", model_kwargs={"dtype": dtype})
    version = f"sentence-transformers {sentence_transformers.__version__} on torch {torch.__version__.split('+')[0]}"
    return version, lambda texts: model.encode(texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)


def openvino_embedder(folder, precision, threads):
    import numpy
    import openvino
    from transformers import AutoTokenizer

    core = openvino.Core()
    hints = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    model = core.compile_model(core.read_model(os.path.join(folder, "onnx", "model.onnx")), "CPU", hints)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.padding_side = "right"
    names = [port.get_any_name() for port in model.inputs]
    request = model.create_infer_request()
    with open(os.path.join(folder, "1_Pooling", "config.json")) as file:
        modes = json.load(file)

    def pooled(states, mask):
        if modes["pooling_mode_cls_token"]:
            return states[:, 0]
        if modes["pooling_mode_lasttoken"]:
            return states[numpy.arange(len(states)), mask.sum(1) - 1]
        return (states * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]

    def embed(texts):
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        rows = [None] * len(texts)
        for begin in range(0, len(order), BATCH):
            chosen = order[begin : begin + BATCH]
            inputs = tokenizer([texts[i] for i in chosen], padding=True, return_tensors="np")
            mask = inputs["attention_mask"]
            inputs = {name: inputs[name] if name in inputs else numpy.zeros_like(mask) for name in names}
            states = request.infer(inputs, share_inputs=True)[0].astype(numpy.float32, copy=False)
            found = pooled(states, mask)
            found = found / numpy.linalg.norm(found, axis=1, keepdims=True)
            for i, row in zip(chosen, found):
                rows[i] = row
        return rows

    return f"OpenVINO {openvino.__version__.split('-')[0]}", embed


EMBEDDERS = {"torch": torch_embedder, "openvino": openvino_embedder}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--side", choices=[*EMBEDDERS], required=True)
    parser.add_argument("--precision", choices=["f32", "bf16"], required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    version, embed = EMBEDDERS[arguments.side](arguments.model, arguments.precision, arguments.threads)
    print(json.dumps({"version": version}), flush=True)
    for line in sys.stdin:
        calls = json.loads(line)["calls"]
        first = None
        start = time.perf_counter()
        for texts in calls:
            rows = embed(texts)
            if first is None:
                first = rows[0]
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "first": [float(value) for value in first]}), flush=True)


if __name__ == "__main__":
    main()
