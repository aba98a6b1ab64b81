"""Generation and prefill rates of OpenVINO GenAI's ContinuousBatchingPipeline, in the shapes of llama-batched-bench.

    python openvino_bench.py MODEL_DIR --sequences 1,8,32 --prompt 128 --generate 64 --threads 2

Prints one JSON line per run of a shape: every prompt first, then `generate` tokens for all sequences together. Greedy, end
tokens ignored. `prefill` runs until the step after which every sequence has its first token; `generation` is timed over
the later steps.
"""

import argparse
import json
import os
import time

import numpy as np
import openvino as ov
import openvino_genai as genai


def pipeline(model: str, threads: int, tokens: int) -> genai.ContinuousBatchingPipeline:
    scheduler = genai.SchedulerConfig()
    scheduler.max_num_batched_tokens = 2048
    scheduler.max_num_seqs = 256
    scheduler.dynamic_split_fuse = True
    scheduler.enable_prefix_caching = False
    # Blocks of 32 tokens on a CPU; some to spare, so that nothing is ever preempted.
    scheduler.num_kv_blocks = 2 * (tokens // 32 + 256)
    scheduler.cache_size = 0
    properties = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    if os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX2":
        # It would choose bf16, and products of quantised rows, by the processor; oneDNN has neither for AVX2.
        properties["INFERENCE_PRECISION_HINT"] = "f32"
        properties["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
    return genai.ContinuousBatchingPipeline(model, scheduler, "CPU", properties)


def prompt(index: int, length: int) -> ov.Tensor:
    """Any tokens will do; those of each sequence differ."""
    return ov.Tensor((100 + (index * 7919 + np.arange(length) * 131) % 20000).astype(np.int64)[None])


def measure(pipe: genai.ContinuousBatchingPipeline, first_id: int, sequences: int, length: int, generate: int) -> dict:
    config = genai.GenerationConfig()
    config.max_new_tokens = generate
    config.ignore_eos = True
    config.do_sample = False
    start = time.perf_counter()
    handles = [pipe.add_request(first_id + i, prompt(first_id + i, length), config) for i in range(sequences)]
    generated = [0] * sequences
    prefilled = None
    steps = []
    while pipe.has_non_finished_requests():
        pipe.step()
        fresh = 0
        for i, handle in enumerate(handles):
            while handle.can_read():
                for output in handle.read().values():
                    fresh += len(output.generated_ids)
                    generated[i] += len(output.generated_ids)
        now = time.perf_counter()
        if prefilled is None and all(count > 0 for count in generated):
            prefilled = now
        elif prefilled is not None and fresh == sequences:
            steps.append((now, fresh))
    if prefilled is None:
        raise SystemExit(f"no step after which all {sequences} sequences had a token")
    seconds = steps[-1][0] - prefilled if steps else 0
    return {
        "sequences": sequences,
        "promptTokens": length,
        "prefillPerSecond": sequences * length / (prefilled - start),
        "generationPerSecond": sum(count for _, count in steps) / seconds if seconds else 0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--sequences", default="1,8,32,64")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    counts = [int(n) for n in arguments.sequences.split(",")]
    pipe = pipeline(arguments.model, arguments.threads, max(counts) * (arguments.prompt + arguments.generate))
    next_id = 0
    measure(pipe, next_id, 1, 16, 4)
    for count in [count for count in counts for _ in range(arguments.runs)]:
        next_id += 1000
        print(json.dumps(measure(pipe, next_id, count, arguments.prompt, arguments.generate)), flush=True)


if __name__ == "__main__":
    main()
