"""Writes test/goldens/llama-samplers.json: what llama.cpp's own samplers keep of some logits.

    npm pack @node-llama-cpp/linux-x64 && tar xzf *.tgz
    python tools/reference/llama-samplers.py package/bins/linux-x64 test/goldens/llama-samplers.json

The samplers are called through llama.cpp's C interface, as it is in 3.22.1 of that package, on logits of this script's own;
no model is needed.
"""

import ctypes
import glob
import json
import math
import sys


class TokenData(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int32), ("logit", ctypes.c_float), ("p", ctypes.c_float)]


class TokenDataArray(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.POINTER(TokenData)),
        ("size", ctypes.c_size_t),
        ("selected", ctypes.c_int64),
        ("sorted", ctypes.c_bool),
    ]


folder, target = sys.argv[1:]
for name in ["libggml-base.so", "libggml.so", "libggml.v*.so"]:
    for path in glob.glob(f"{folder}/{name}"):
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
llama = ctypes.CDLL(glob.glob(f"{folder}/libllama.*so*")[0])

F, I, U, Z, P = ctypes.c_float, ctypes.c_int32, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p
SIGNATURES = {
    "top_n_sigma": [F],
    "top_k": [I],
    "typical": [F, Z],
    "top_p": [F, Z],
    "min_p": [F, Z],
    "xtc": [F, F, Z, U],
    "temp": [F],
    "temp_ext": [F, F, F],
    "mirostat": [I, U, F, F, I],
    "mirostat_v2": [U, F, F],
    "dry": [P, F, F, I, I, P, Z],
}


def sampler(name, *values):
    init = getattr(llama, f"llama_sampler_init_{name}")
    init.argtypes, init.restype = SIGNATURES[name], P
    return init(*values)


llama.llama_sampler_apply.argtypes = [P, ctypes.POINTER(TokenDataArray)]
llama.llama_sampler_accept.argtypes = [P, I]


def logits_of(seed, count, spread):
    """Numbers that any language makes alike: two uniform ones of a congruential generator, as a normal one."""
    state, values = seed, []

    def uniform():
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return (state + 1) / (2**31 + 1)

    for _ in range(count):
        values.append(spread * math.sqrt(-2 * math.log(uniform())) * math.cos(2 * math.pi * uniform()))
    return [ctypes.c_float(value).value for value in values]


def candidates(logits):
    data = (TokenData * len(logits))(*[TokenData(i, logit, 0) for i, logit in enumerate(logits)])
    return data, TokenDataArray(data, len(logits), -1, False)


def kept(array):
    entries = [(array.data[i].id, array.data[i].logit) for i in range(array.size)]
    return sorted(entry for entry in entries if entry[1] > -math.inf)


def apply_all(logits, samplers):
    data, array = candidates(logits)
    for one in samplers:
        llama.llama_sampler_apply(one, ctypes.byref(array))
    entries = kept(array)
    greatest = max(logit for _, logit in entries)
    weights = [math.exp(logit - greatest) for _, logit in entries]
    return {"tokens": [token for token, _ in entries], "probabilities": [w / sum(weights) for w in weights]}


CHAINS = [
    {"typicalP": 0.3},
    {"typicalP": 0.9},
    {"topNSigma": 1.0},
    {"topNSigma": 2.2},
    {"xtcProbability": 1.0, "xtcThreshold": 0.02},
    {"xtcProbability": 1.0, "xtcThreshold": 0.1},
    {"dynatempRange": 0.5, "temperature": 0.9},
    {"dynatempRange": 2.0, "dynatempExponent": 1.7, "temperature": 1.2},
    {"temperatureLast": True, "topK": 40, "typicalP": 0.8, "topP": 0.9, "minP": 0.05, "temperature": 0.7},
    {"temperatureLast": True, "topP": 0.6, "temperature": 1.8},
    {"topK": 60, "typicalP": 0.7, "topP": 0.95, "minP": 0.02, "xtcProbability": 1.0, "xtcThreshold": 0.05,
     "dynatempRange": 0.4, "temperature": 0.8},
]  # fmt: skip


def chain_of(chain):
    """llama.cpp's default order."""
    temperature = chain.get("temperature", 1.0)
    samplers = []
    if "topNSigma" in chain:
        samplers.append(sampler("top_n_sigma", chain["topNSigma"]))
    if "topK" in chain:
        samplers.append(sampler("top_k", chain["topK"]))
    if "typicalP" in chain:
        samplers.append(sampler("typical", chain["typicalP"], 1))
    if "topP" in chain:
        samplers.append(sampler("top_p", chain["topP"], 1))
    if "minP" in chain:
        samplers.append(sampler("min_p", chain["minP"], 1))
    if "xtcProbability" in chain:
        samplers.append(sampler("xtc", chain["xtcProbability"], chain["xtcThreshold"], 1, 7))
    if "dynatempRange" in chain:
        exponent = chain.get("dynatempExponent", 1.0)
        samplers.append(sampler("temp_ext", temperature, chain["dynatempRange"], exponent))
    else:
        samplers.append(sampler("temp", temperature))
    return samplers


def mirostat_run(version, tau, eta, temperature, vocab):
    """A few tokens one after the other: what is kept each time, and which is drawn."""
    one = (
        sampler("mirostat", vocab, 5, tau, eta, 100) if version == 1 else sampler("mirostat_v2", 5, tau, eta)
    )
    steps = []
    for step in range(12):
        seed, spread = 900 + step, 1.0 + step % 4
        data, array = candidates(logits_of(seed, vocab, spread))
        llama.llama_sampler_apply(sampler("temp", temperature), ctypes.byref(array))
        llama.llama_sampler_apply(one, ctypes.byref(array))
        tokens = [token for token, _ in kept(array)]
        steps.append({"seed": seed, "spread": spread, "tokens": tokens, "drawn": array.data[array.selected].id})
    return {"version": version, "tau": tau, "eta": eta, "temperature": temperature, "steps": steps}


def dry_run(history, multiplier, base, allowed, last_n):
    one = sampler("dry", None, multiplier, base, allowed, 4096 if last_n < 0 else last_n, None, 0)
    for token in history:
        llama.llama_sampler_accept(one, token)
    data, array = candidates([0.0] * 8)
    llama.llama_sampler_apply(one, ctypes.byref(array))
    lost = {str(token): -logit for token, logit in kept(array) if logit != 0}
    return {"history": history, "multiplier": multiplier, "base": base, "allowed": allowed, "lastN": last_n, "lost": lost}


HISTORIES = [
    [1, 2, 3, 1, 2],
    [0, 1, 2, 3, 0, 1, 2],
    [1, 1, 1, 1, 1, 1],
    [3, 1, 2, 5, 1, 2, 6, 3, 1, 2, 7, 0, 3, 1, 2],
    [int(value * 1000) % 4 for value in logits_of(5, 60, 3.0)],
]

VOCAB = 300
chains = []
for index, chain in enumerate(CHAINS):
    for spread in (0.7, 2.5):
        seed = 40 + index
        logits = logits_of(seed, VOCAB, spread)
        chains.append({"chain": chain, "seed": seed, "spread": spread, **apply_all(logits, chain_of(chain))})
with open(target, "w") as file:
    json.dump(
        {
            "vocab": VOCAB,
            "chains": chains,
            "mirostat": [mirostat_run(v, tau, 0.1, t, VOCAB) for v in (1, 2) for tau, t in ((5.0, 1.0), (3.0, 0.8))],
            "dry": [dry_run(h, 0.8, 1.75, allowed, n) for h in HISTORIES for allowed in (1, 2) for n in (-1, 9)],
        },
        file,
    )
    file.write("\n")
