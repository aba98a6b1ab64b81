"""
Tiny embedders and rerankers of many families, and what sentence-transformers answers for them, without their weights.

    python tools/reference/embedders.py [NAME ...]

writes test/goldens/embedders.json: for each model its files, the names and shapes of its tensors with the mean and the spread of their
numbers (those of `numbers` in families.py, which test/support/made-models.ts makes too), and its answers in float32: the row of each list
of token ids, the tokens and the row of each text, the score of each pair, the scores of each label as transformers' pipeline makes them, what BGE-M3 gives of tokens. Names given replace their entries alone.
"""

import json
import os
import shutil
import sys
import tempfile

import torch
import transformers
from safetensors.numpy import save_file
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.cross_encoder.modules import LogitScore

from embedder_models import CLASSIFIERS, DECODERS, ENCODERS, RERANKERS
from families import numbers, written_names
from golden import row, significant
from nomic_moe import NomicMoe

TEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test")
FILE = os.path.join(TEST, "goldens", "embedders.json")
LENGTHS = [1, 2, 33, 70]
TEXTS = ["the cat sat on a mat", "Unbelievable: is it a bird, <|im_end|> or what?"]
PAIRS = [("what is it", "a bird in the sky"), ("the dog", "one, two, three"), ("where", "<|im_end|> of the fly")]


def measure(name, shape, gemma):
    """Mean and spread of a tensor: peaked attention, and nothing trivial."""
    if name.endswith("bias"):
        return 0.0, 0.2
    if "norm" in name.lower() and len(shape) == 1:
        return 0.0 if gemma else 1.0, 0.2
    if "embed" in name:
        return 0.0, 0.7
    if len(shape) < 2:
        return 0.0, 0.3
    return 0.0, round(1.8 / shape[-1] ** 0.5, 4)


def write_json(folder, name, value):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def write_tokenizer(folder, spec):
    """The tokenizer of a fixture, with other tokens around a text. Returns what was changed."""
    source = os.path.join(TEST, "fixtures", spec["tokenizer"])
    with open(os.path.join(source, "tokenizer.json"), encoding="utf-8") as file:
        tokenizer = json.load(file)
    changed = dict(spec.get("changes", {}))
    if "around" in spec:
        before, behind = spec["around"]
        vocabulary = tokenizer["model"]["vocab"]
        special = lambda text: {"SpecialToken": {"id": text, "type_id": 0}}
        sequence = lambda name: {"Sequence": {"id": name, "type_id": 0}}
        template = lambda *inner: [*map(special, before), *inner, *map(special, behind)]
        if before or behind:
            tokens = {text: {"id": text, "ids": [vocabulary[text]], "tokens": [text]} for text in [*before, *behind]}
            changed["post_processor"] = {
                "type": "TemplateProcessing",
                "single": template(sequence("A")),
                "pair": template(sequence("A"), *map(special, spec["between"]), sequence("B")),
                "special_tokens": tokens,
            }
    write_json(folder, "tokenizer.json", tokenizer | changed)
    with open(os.path.join(source, "tokenizer_config.json"), encoding="utf-8") as file:
        config = json.load(file)
    config.pop("chat_template", None)
    if "around" in spec and spec["around"][0]:
        config.pop("add_bos_token")
    if spec["tokenizer"] == "tiny-bert-mean":
        config |= {"tokenizer_class": "PreTrainedTokenizerFast", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    config |= spec.get("special", {})
    if spec.get("types"):
        config["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    if "template" in spec:
        config["chat_template"] = spec["template"]
    write_json(folder, "tokenizer_config.json", config)
    return changed, config


def write_weights(folder, model_class, config, spec):
    torch.manual_seed(0)
    if "plain" in spec:
        shapes = {key: list(value.shape) for key, value in NomicMoe(spec["published"]).state_dict().items()}
        return save_tensors(folder, {"model.safetensors": [[key, shape, *measure(key, shape, False)] for key, shape in shapes.items()]})
    with tempfile.TemporaryDirectory() as directory:
        shapes = written_names(model_class(config), directory)
        shutil.copy(os.path.join(directory, "config.json"), folder)
    gemma = spec["config"].startswith("Gemma")
    files = {"model.safetensors": [[key, shape, *measure(key, shape, gemma)] for key, shape in shapes.items()]}
    for name, fields in spec["files"].items():
        if not name.endswith("_Dense/config.json"):
            continue
        path = name.replace("config.json", "model.safetensors")
        tensors = {"linear.weight": [fields["out_features"], fields["in_features"]]}
        if fields["bias"]:
            tensors["linear.bias"] = [fields["out_features"]]
        files[path] = [[key, shape, *measure(key, shape, False)] for key, shape in tensors.items()]
    for path, shapes in spec.get("layers", {}).items():
        files[path] = [[key, shape, *measure(key, shape, False)] for key, shape in shapes.items()]
    return save_tensors(folder, files)


def save_tensors(folder, files):
    for path, tensors in files.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        save_file({tensor[0]: numbers(*tensor) for tensor in tensors}, target, {"format": "pt"})
    return files


def config_json(folder, spec):
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    for key in ("transformers_version", "dtype"):
        config.pop(key, None)
    if "architecture" in spec:
        config["architectures"] = [spec["architecture"]]
    for key in spec.get("without", []):
        config.pop(key)
    config |= spec.get("json", {})
    write_json(folder, "config.json", config)
    return config


@torch.no_grad()
def embeddings(folder, spec):
    model = SentenceTransformer(folder, device="cpu", model_kwargs={"dtype": torch.float32, "attn_implementation": "eager"})
    generator = torch.Generator().manual_seed(23)
    lengths = [length for length in spec.get("lengths", LENGTHS) if length <= spec["fields"].get("max_position_embeddings", 256)]
    cases = []
    for length in lengths:
        ids = torch.randint(3, 110, (length,), generator=generator)
        given = {"input_ids": ids[None], "attention_mask": torch.ones(1, length, dtype=torch.long)}
        cases.append({"ids": ids.tolist(), "output": row(model(given)["sentence_embedding"][0])})
    texts = []
    for text in TEXTS:
        ids = model.tokenizer(text, split_special_tokens=True)["input_ids"] if spec["tokenizer"] != "tiny-bert-mean" else model.tokenizer(text)["input_ids"]
        given = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
        texts.append({"text": text, "ids": ids, "output": row(model(given)["sentence_embedding"][0])})
    spread = torch.tensor([case["output"] for case in cases])
    print(f"  cosines of the cases {[round(float(torch.cosine_similarity(spread[0], one, dim=0)), 2) for one in spread]}")
    return {"cases": cases, "texts": texts}


def plain_embeddings(folder, spec):
    """The same by a model in plain torch."""
    model = NomicMoe(spec["published"]).eval()
    model.load_state_dict(load_file(os.path.join(folder, "model.safetensors")))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"))
    generator = torch.Generator().manual_seed(23)
    lists = [torch.randint(3, 110, (length,), generator=generator).tolist() for length in LENGTHS]
    texts = [(text, tokenizer(text)["input_ids"]) for text in TEXTS]
    return {
        "cases": [{"ids": ids, "output": row(model(ids))} for ids in lists],
        "texts": [{"text": text, "ids": ids, "output": row(model(ids))} for text, ids in texts],
    }


@torch.no_grad()
def token_outputs(folder, spec):
    """The embedding, the weights and the vectors of BGE-M3, by the rules of FlagEmbedding (m3.py and modeling.py of its M3) in plain torch."""
    model = getattr(transformers, spec["model"]).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    layer = lambda name, rows: torch.nn.functional.linear(rows, **load_file(os.path.join(folder, f"{name}.safetensors")))
    unused = {tokenizer.convert_tokens_to_ids(token) for token in (tokenizer.cls_token, tokenizer.eos_token, tokenizer.pad_token, tokenizer.unk_token)}
    answers = []
    for text in [*TEXTS, "the the cat the", ""]:
        ids = tokenizer(text)["input_ids"]
        rows = model(torch.tensor([ids])).last_hidden_state
        weights = {}
        for weight, token in zip(torch.relu(layer("sparse_linear", rows))[0, :, 0].tolist(), ids):
            if token not in unused and weight > max(0, weights.get(token, 0)):
                weights[token] = significant(weight)
        vectors = torch.nn.functional.normalize(layer("colbert_linear", rows[:, 1:]), dim=-1)[0]
        embedding = torch.nn.functional.normalize(rows[:, 0], dim=-1)[0]
        answers.append({"text": text, "ids": ids, "output": row(embedding), "weights": sorted(weights.items()), "vectors": [row(one) for one in vectors]})
        print(f"  {len(ids)} tokens, weights {answers[-1]['weights']}")
    return {"tokens": answers}


@torch.no_grad()
def scores(folder, spec):
    kwargs = {"dtype": torch.float32, "attn_implementation": "eager"}
    if "tokens" in spec:
        transformer = Transformer(folder, transformer_task="text-generation", model_kwargs=kwargs)
        model = CrossEncoder(modules=[transformer, LogitScore(*spec["tokens"])], device="cpu")
        with tempfile.TemporaryDirectory() as saved:
            model.save_pretrained(saved)
            for name in ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "1_LogitScore/config.json"):
                with open(os.path.join(saved, name), encoding="utf-8") as file:
                    spec["files"][name] = json.load(file)
            spec["files"]["config_sentence_transformers.json"].pop("__version__", None)
    else:
        model = CrossEncoder(folder, device="cpu", model_kwargs=kwargs)
    plain = [(query, document) for query, document in PAIRS if "<|" not in document]
    answers = [{"pair": list(pair), "score": round(float(model.predict([pair])[0]), 8)} for pair in plain]
    print(f"  scores {[one['score'] for one in answers]}")
    return {"pairs": answers}


def classes(folder, spec):
    """Scores of all labels of texts and pairs, in the order of id2label."""
    model = getattr(transformers, spec["model"]).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    pipeline = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu", top_k=None)
    plain = [text for text in [*TEXTS, *PAIRS] if "<|" not in "".join(text)]
    answers = []
    for given in plain:
        sent = given if isinstance(given, str) else {"text": given[0], "text_pair": given[1]}
        found = pipeline(sent) if isinstance(given, str) else pipeline([sent])
        found = found[0] if isinstance(found[0], list) else found
        by_label = {one["label"]: one["score"] for one in found}
        ids = tokenizer(given)["input_ids"] if isinstance(given, str) else tokenizer(*given)["input_ids"]
        answers.append({"input": given, "ids": ids, "scores": [round(by_label[label], 8) for label in model.config.id2label.values()]})
    print(f"  scores {[one['scores'] for one in answers]}")
    return {"labels": list(model.config.id2label.values()), "classes": answers}


def made(name, spec):
    print(name)
    plain = "plain" in spec
    model_class = None if plain else getattr(transformers, spec["model"])
    config = None if plain else getattr(transformers, spec["config"])(**spec["fields"])
    with tempfile.TemporaryDirectory() as folder:
        changed, tokenizer_config = write_tokenizer(folder, spec)
        tensors = write_weights(folder, model_class, config, spec)
        config = {} if plain else config_json(folder, spec)
        for path, value in spec["files"].items():
            write_json(folder, path, value)
        answer = plain_embeddings if plain else token_outputs if "layers" in spec else classes if spec.get("classes") else scores if spec.get("scores") else embeddings
        answers = answer(folder, spec)
    files = {"config.json": spec.get("published", config), "tokenizer_config.json": tokenizer_config} | spec["files"]
    tokenizer = {"of": spec["tokenizer"], "changed": changed}
    return {"name": name, "tokenizer": tokenizer, "files": files, "tensors": tensors} | answers


def main():
    torch.set_num_threads(1)
    models = DECODERS | RERANKERS | ENCODERS | CLASSIFIERS
    known = {}
    if os.path.exists(FILE):
        with open(FILE, encoding="utf-8") as file:
            known = {item["name"]: item for item in json.load(file)["models"]}
    for name, spec in models.items():
        if name not in known or name in sys.argv[1:]:
            known[name] = made(name, spec)
    made_by = "tools/reference/embedders.py, sentence-transformers and transformers, float32"
    lines = ",\n  ".join(json.dumps(known[name], separators=(",", ":")) for name in models)
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(f'{{"madeBy": {json.dumps(made_by)},\n "models": [\n  {lines}\n ]}}\n')


if __name__ == "__main__":
    main()
