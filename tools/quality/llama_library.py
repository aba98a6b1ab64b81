"""llama.cpp's library by ctypes, for numbers to compare with ours on the same file:

    llama_library.py LIBRARIES quantize IN.gguf OUT.gguf FTYPE
    llama_library.py LIBRARIES logits MODEL.gguf OUT THREADS < windows.json

LIBRARIES is the folder of libllama and libggml, as of node-llama-cpp's packages of binaries. `logits` reads [[token, ..], ..] and
writes the logits of each window's positions but the last as float32, one after another; each window is a sequence of its own.
"""

import ctypes
import glob
import json
import os
import sys
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_float, c_int8, c_int32, c_uint32, c_void_p

# Room for what follows the fields that are named here; the library sets it to its defaults.
REST = ctypes.c_ubyte * 512


class QuantizeParams(Structure):
    _fields_ = [
        ("threads", c_int32),
        ("ftype", c_int32),
        ("output_type", c_int32),
        ("embedding_type", c_int32),
        ("allow_requantize", c_bool),
        ("rest", REST),
    ]


class ModelParams(Structure):
    _fields_ = [("rest", REST)]


class ContextParams(Structure):
    _fields_ = [
        ("context", c_uint32),
        ("batch", c_uint32),
        ("micro_batch", c_uint32),
        ("sequences", c_uint32),
        ("rest", REST),
    ]


class Batch(Structure):
    _fields_ = [
        ("count", c_int32),
        ("token", POINTER(c_int32)),
        ("embedding", POINTER(c_float)),
        ("position", POINTER(c_int32)),
        ("sequence_count", POINTER(c_int32)),
        ("sequence", POINTER(POINTER(c_int32))),
        ("wants_logits", POINTER(c_int8)),
    ]


def load(folder):
    def library(name):
        found = sorted(glob.glob(os.path.join(folder, name + "*.so*")))
        if not found:
            sys.exit(f"{folder}: has no {name}.")
        return ctypes.CDLL(found[0], mode=ctypes.RTLD_GLOBAL)

    library("libggml-base")
    library("libggml.").ggml_backend_load_all_from_path(os.fsencode(folder))
    llama = library("libllama.")
    llama.llama_backend_init()
    types = {
        "llama_model_quantize_default_params": (QuantizeParams, []),
        "llama_model_quantize": (c_uint32, [c_char_p, c_char_p, POINTER(QuantizeParams)]),
        "llama_model_default_params": (ModelParams, []),
        "llama_context_default_params": (ContextParams, []),
        "llama_model_load_from_file": (c_void_p, [c_char_p, ModelParams]),
        "llama_init_from_model": (c_void_p, [c_void_p, ContextParams]),
        "llama_set_n_threads": (None, [c_void_p, c_int32, c_int32]),
        "llama_model_get_vocab": (c_void_p, [c_void_p]),
        "llama_vocab_n_tokens": (c_int32, [c_void_p]),
        "llama_get_memory": (c_void_p, [c_void_p]),
        "llama_memory_clear": (None, [c_void_p, c_bool]),
        "llama_batch_init": (Batch, [c_int32, c_int32, c_int32]),
        "llama_decode": (c_int32, [c_void_p, Batch]),
        "llama_get_logits_ith": (c_void_p, [c_void_p, c_int32]),
    }
    for name, (result, arguments) in types.items():
        function = getattr(llama, name)
        function.restype, function.argtypes = result, arguments
    return llama


def quantize(llama, source, target, ftype):
    params = llama.llama_model_quantize_default_params()
    params.ftype, params.allow_requantize = int(ftype), True
    if llama.llama_model_quantize(os.fsencode(source), os.fsencode(target), byref(params)) != 0:
        sys.exit(f"{source}: llama.cpp cannot make {target} of it.")


def logits(llama, model_file, target, threads):
    windows = json.load(sys.stdin)
    model = llama.llama_model_load_from_file(os.fsencode(model_file), llama.llama_model_default_params())
    if not model:
        sys.exit(f"{model_file}: llama.cpp cannot load it.")
    params = llama.llama_context_default_params()
    # Fields that lie elsewhere in another version would be set silently.
    found = (params.context, params.batch, params.micro_batch, params.sequences)
    if found != (512, 2048, 512, 1):
        sys.exit(f"llama.cpp's context begins with {found}, expected (512, 2048, 512, 1): another version of the library.")
    longest = max(len(window) for window in windows)
    params.context = params.batch = params.micro_batch = max(256, longest)
    context = llama.llama_init_from_model(model, params)
    llama.llama_set_n_threads(context, int(threads), int(threads))
    width = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
    batch = llama.llama_batch_init(longest, 0, 1)
    with open(target, "wb") as out:
        for window in windows:
            llama.llama_memory_clear(llama.llama_get_memory(context), True)
            batch.count = len(window)
            for at, token in enumerate(window):
                batch.token[at], batch.position[at] = token, at
                batch.sequence_count[at], batch.sequence[at][0] = 1, 0
                batch.wants_logits[at] = at + 1 < len(window)
            if llama.llama_decode(context, batch) != 0:
                sys.exit(f"{model_file}: llama.cpp cannot compute it.")
            for at in range(len(window) - 1):
                out.write(ctypes.string_at(llama.llama_get_logits_ith(context, at), 4 * width))


if __name__ == "__main__":
    _, libraries, command, *rest = sys.argv
    {"quantize": quantize, "logits": logits}[command](load(libraries), *rest)
