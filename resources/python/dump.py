#!/usr/bin/env python3
"""Exports activations and weights of a Hugging Face model into a native dump (planish-dump/1), in one line:

  dump(model, ["some text", "another"], "out.h5", tokenizer=tokenizer)
  python dump.py MODEL_FOLDER TEXTS.txt OUT.h5 --tokens 4096 --edges 'layers.1?.*'

Every text is one request. The file grows by requests under OUT.h5.part and takes its name when it is complete; a second call goes
on where the first stopped. Needs torch and h5py (and transformers for the command line).
"""
import argparse
import fnmatch
import hashlib
import json
import os
import sys

import h5py
import numpy as np
import torch

from planish_plan import Family, PlanError

STORED = {torch.float16: ("float16", np.float16), torch.bfloat16: ("bfloat16", np.uint16), torch.float32: ("float32", np.float32),
          torch.float64: ("float32", np.float32)}
ROWS_PER_CHUNK = 64


def _config(config, *names, default=None):
    for name in names:
        value = getattr(config, name, None)
        if value is not None:
            return value
    return default


def model_facts(config):
    """/model attributes of a Hugging Face config; names are those of plan.md and names.md."""
    heads = _config(config, "num_attention_heads", "n_head", default=0)
    hidden = _config(config, "hidden_size", "n_embd", "d_model", default=0)
    facts = {"hidden_size": hidden, "num_layers": _config(config, "num_hidden_layers", "n_layer", default=0), "num_heads": heads,
             "num_kv_heads": _config(config, "num_key_value_heads", default=heads), "head_dim": _config(config, "head_dim", default=hidden // max(heads, 1)),
             "ffn_size": _config(config, "intermediate_size", "n_inner", "ffn_dim", default=4 * hidden), "vocab_size": _config(config, "vocab_size", default=0),
             "activation": str(_config(config, "hidden_act", "activation_function", default="")),
             "tied_embeddings": int(bool(_config(config, "tie_word_embeddings", default=False))), "norm_eps": float(_config(config, "rms_norm_eps", "layer_norm_eps",
                                                                                                                              "layer_norm_epsilon", default=1e-5))}
    theta = _config(config, "rope_theta", default=(getattr(config, "rope_parameters", None) or {}).get("rope_theta"))
    if theta is not None:
        facts["rope_theta"] = float(theta)
        facts["rotary_dim"] = int(facts["head_dim"] * float(_config(config, "partial_rotary_factor", default=1.0)))
    return facts


def _array(tensor, dtype):
    word, kind = STORED[dtype]
    tensor = tensor.detach().to("cpu")
    if word == "bfloat16":
        return tensor.to(torch.bfloat16).contiguous().view(torch.int16).numpy().view(np.uint16)
    array = tensor.to(torch.float32).numpy()
    if kind == np.float16 and np.abs(array).max(initial=0) > 65504:
        raise PlanError("an activation is beyond float16; expected dtype='float32'")
    return array.astype(kind)


class _Edge:
    def __init__(self, name, layer, site, producer, consumers, module):
        self.name, self.layer, self.site, self.producer, self.consumers, self.module = name, layer, site, producer, consumers, module
        self.channels, self.rows = 0, []


def _producer(family, pattern, layer):
    name = (pattern or "").replace("{l}", str(layer))
    return name if name and family.find(name) is not None else (name if "residual" in name else "")


def edges_of(model, family, facts, pattern="*"):
    """Edges whose readers the model has, with the module whose input they are."""
    edges = []
    for layer in range(facts["num_layers"]):
        for site, entry in family.edges().items():
            if site == "head":
                continue
            consumers = [f"layers.{layer}.{role}" for role in entry.get("consumers", []) if family.find(f"layers.{layer}.{role}") is not None]
            if consumers:
                place = family.find(consumers[0])
                edges.append(_Edge(f"layers.{layer}.{site}", layer, site, _producer(family, entry.get("producer"), layer), consumers,
                                   model.get_submodule(place.parameter.rsplit(".", 1)[0])))
        first = next((edge for edge in edges if edge.layer == layer), None)
        if first is not None:
            path = family.find(first.consumers[0]).parameter
            block = path[:path.index(f".{layer}.") + len(f".{layer}")]
            edges.append(_Edge(f"layers.{layer}.residual", layer, "residual", "stream:residual", [], model.get_submodule(block)))
    norm = family.find("norm")
    if norm is not None:
        edges.append(_Edge(f"layers.{facts['num_layers']}.residual", facts["num_layers"], "residual", "stream:residual", [],
                           model.get_submodule(norm.parameter.rsplit(".", 1)[0])))
    head = family.find("head")
    if head is not None and model.get_output_embeddings() is not None:
        edges.append(_Edge("head", -1, "head", "norm" if norm is not None else "", ["head"], model.get_output_embeddings()))
    return [edge for edge in edges if fnmatch.fnmatchcase(edge.name, pattern)]


def _encodings(texts, tokenizer, limit):
    """[(ids, mask)] per request, at most `limit` tokens in all."""
    if hasattr(texts, "keys"):
        ids = torch.as_tensor(texts["input_ids"])
        masks = torch.as_tensor(texts["attention_mask"]) if "attention_mask" in texts else torch.ones_like(ids)
        requests = list(zip(ids.tolist(), masks.tolist()))
    elif all(isinstance(text, str) for text in texts):
        if tokenizer is None:
            raise PlanError("texts: no tokenizer; expected tokenizer=, or lists of token ids")
        requests = [(ids, [1] * len(ids)) for ids in (tokenizer(text)["input_ids"] for text in texts)]
    else:
        requests = [(ids, [1] * len(ids)) for ids in (torch.as_tensor(text).flatten().tolist() for text in texts)]
    kept, total = [], 0
    for ids, mask in requests:
        room = len(ids) if limit is None else min(len(ids), limit - total)
        if room > 0:
            kept.append((ids[:room], mask[:room]))
            total += room
    return kept


def _hooks(edges):
    handles = []
    for edge in edges:
        def keep(module, inputs, edge=edge):
            x = inputs[0]
            edge.rows.append(x.detach().reshape(-1, x.shape[-1]))
        handles.append(edge.module.register_forward_pre_hook(keep))
    return handles


def _run(model, ids, mask, decode):
    """Forward pass of one request, and `decode` greedy steps behind it; returns ids, positions, phases, mask of the rows."""
    device = next(model.parameters()).device
    tokens, attention = torch.tensor([ids], device=device), torch.tensor([mask], device=device)
    positions = (attention.cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        out = model(input_ids=tokens, attention_mask=attention, use_cache=decode > 0)
        rows = [list(ids), positions[0].tolist(), [0] * len(ids), list(mask)]
        for step in range(decode):
            token = out.logits[:, -1:].argmax(-1)
            attention = torch.cat([attention, torch.ones_like(attention[:, :1])], dim=1)
            for column, value in zip(rows, (int(token), int(positions[0, -1]) + 1 + step, 1, 1)):
                column.append(value)
            out = model(input_ids=token, attention_mask=attention, past_key_values=out.past_key_values, use_cache=True)
    return rows


def _start(file, edges, dtype, facts, family, attributes):
    file.attrs.update({"format": "planish-dump/1", **attributes})
    group = file.require_group("model")
    group.attrs.update({key: value for key, value in facts.items() if value not in (None, "")})
    norm, rope = family.tree.get("norm") or {}, family.tree.get("rope") or {}
    group.attrs.update({"norm_kind": norm.get("kind", "rmsnorm"), "norm_offset": int(norm.get("offset", 0)), "rope_style": str(rope.get("style", "none")),
                        "post_norm": int(bool(family.tree.get("post_norm", False)))})
    for name, kind in (("id", np.int32), ("request", np.int32), ("position", np.int32), ("phase", np.uint8), ("mask", np.uint8)):
        file.create_dataset("tokens/" + name, (0,), kind, maxshape=(None,), chunks=(4096,))
    file.create_dataset("tokens/text", (0,), h5py.string_dtype(), maxshape=(None,), chunks=(4096,))
    word, kind = STORED[dtype]
    for edge in edges:
        data = file.create_dataset("edges/" + edge.name, (0, edge.channels), kind, maxshape=(None, edge.channels), chunks=(ROWS_PER_CHUNK, edge.channels))
        data.attrs.update({"layer": edge.layer, "site": edge.site, "producer": edge.producer, "basis": "original", "stored_dtype": word, "axis": "channel last"})
        data.attrs["consumers"] = np.array(edge.consumers, dtype=h5py.string_dtype())
    file.attrs["requests_done"] = 0


def _append(file, edges, columns, texts, request, dtype):
    """One request: edges first, tokens last, then the count; a kill in between leaves rows that the next call cuts off."""
    begin, rows = len(file["tokens/id"]), len(columns[0])
    for edge in edges:
        values = torch.cat(edge.rows)
        edge.rows.clear()
        if len(values) != rows:
            raise PlanError(f"{edge.name}: saw {len(values)} rows of {rows}; expected a module that sees every token once")
        data = file["edges/" + edge.name]
        data.resize(begin + rows, axis=0)
        data[begin:] = _array(values, dtype)
    for name, values in zip(("id", "position", "phase", "mask", "request", "text"), (*columns, [request] * rows, texts)):
        data = file["tokens/" + name]
        data.resize(begin + rows, axis=0)
        data[begin:] = values
    file.attrs["requests_done"] = request + 1
    file.flush()


def _cut(file):
    """Rows behind the last whole request are dropped."""
    done = int(file.attrs["requests_done"])
    rows = int((file["tokens/request"][:] < done).sum())
    for data in (*file["edges"].values(), *file["tokens"].values()):
        if len(data) > rows:
            data.resize(rows, axis=0)
    return done


def _weights(file, edges, family, parameters, dtype):
    """Consumers, their biases and the producing norms, once."""
    def put(path, tensor):
        if path not in file:
            file.create_dataset(path, data=_array(tensor, dtype)).attrs["stored_dtype"] = STORED[dtype][0]
        return file[path]

    def values(place):
        tensor = parameters[place.parameter]
        tensor = tensor.T if place.transposed and tensor.dim() == 2 else tensor
        return tensor if place.rows is None else tensor[place.rows[0]:place.rows[1]]
    norm = family.tree.get("norm") or {}
    for name in {name for edge in edges for name in edge.consumers}:
        data, bias = put("weights/" + name, values(family.find(name))), family.find(name + ".bias")
        if bias is not None:
            put("biases/" + name, values(bias))
            data.attrs["bias"] = "/biases/" + name
    for name in {edge.producer for edge in edges}:
        place = family.find(name) if "norm" in name or ".ln_" in name else None
        if place is None or parameters[place.parameter].dim() != 1:
            continue
        data, bias = put("norms/" + name, values(place)), family.find(name + ".bias")
        data.attrs.update({"kind": norm.get("kind", "rmsnorm"), "offset": int(norm.get("offset", 0)), "eps": float(file["model"].attrs.get("norm_eps", 1e-5))})
        if bias is not None:
            put("norms/" + name + ".bias", values(bias))
            data.attrs["bias"] = "/norms/" + name + ".bias"


def dump(model, texts, out, tokenizer=None, tokens=None, edges="*", weights=True, decode=0, dtype=None, families=None, quiet=False):
    """Writes `out`; returns its path.

    texts: strings, lists of token ids, or what a tokenizer returned (ids and mask, padding kept and masked). tokens: at most so
    many in all. edges: a glob over edge names. decode: greedy steps behind every prompt (phase 1). dtype: torch dtype of the
    stored numbers, default the model's. Resumes OUT.part when it belongs to the same texts and edges.
    """
    facts, parameters = model_facts(model.config), model.state_dict()
    key = Family.match(getattr(model.config, "architectures", None) or [type(model).__name__], set(parameters), families)
    family = Family(key, set(parameters), facts, families)
    chosen = edges_of(model, family, facts, edges)
    if not chosen:
        raise PlanError(f"{edges}: matches no edge of this model; expected a glob such as layers.*.mlp_down")
    requests = _encodings(texts, tokenizer, tokens)
    dtype = dtype or next(model.parameters()).dtype
    corpus = hashlib.sha256(json.dumps([requests, decode, sorted(edge.name for edge in chosen), str(dtype)]).encode()).hexdigest()
    part = out + ".part"
    handles, training = _hooks(chosen), model.training
    model.eval()
    try:
        with h5py.File(part, "a") as file:
            done = _cut(file) if file.attrs.get("corpus_sha256") == corpus and "requests_done" in file.attrs else None
            if done is None and len(file):
                raise PlanError(f"{part}: belongs to other texts or edges; expected it removed, or the call it came from")
            for request, (ids, mask) in enumerate(requests):
                if done is not None and request < done:
                    continue
                columns = _run(model, ids, mask, decode)
                if done is None:
                    for edge in chosen:
                        edge.channels = edge.rows[0].shape[-1] if edge.rows else 0
                    chosen = [edge for edge in chosen if edge.rows]
                    size = sum(edge.channels for edge in chosen) * np.dtype(STORED[dtype][1]).itemsize
                    count = sum(len(each) + decode for each, _ in requests)
                    if not quiet:
                        print(f"{out}: {len(requests)} requests, {count} tokens, {size / 1e6:.3f} MB a token, {size * count / 1e9:.3f} GB", file=sys.stderr)
                    _start(file, chosen, dtype, facts, family, {"model": str(getattr(model.config, "_name_or_path", "") or type(model).__name__), "family": key,
                           "created_by": "planish dump.py", "corpus_sha256": corpus, "tokenizer": type(tokenizer).__name__ if tokenizer else "",
                           "config_json": model.config.to_json_string() if hasattr(model.config, "to_json_string") else "{}"})
                    done = 0
                text = tokenizer.convert_ids_to_tokens(columns[0]) if tokenizer is not None else [""] * len(columns[0])
                _append(file, chosen, columns, [str(each) for each in text], request, dtype)
            if weights and done is not None:
                _weights(file, chosen, family, parameters, dtype)
    finally:
        for handle in handles:
            handle.remove()
        model.train(training)
    os.replace(part, out)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="folder of a Hugging Face model")
    parser.add_argument("texts", help="text file, one request a line")
    parser.add_argument("out")
    parser.add_argument("--tokens", type=int, help="at most so many tokens")
    parser.add_argument("--edges", default="*", help="glob over edge names")
    parser.add_argument("--decode", type=int, default=0, help="greedy steps behind every prompt")
    parser.add_argument("--no-weights", action="store_true")
    a = parser.parse_args()
    from transformers import AutoModelForCausalLM, AutoTokenizer
    model, tokenizer = AutoModelForCausalLM.from_pretrained(a.model, torch_dtype="auto"), AutoTokenizer.from_pretrained(a.model)
    with open(a.texts, encoding="utf-8") as file:
        texts = [line.rstrip("\n") for line in file if line.strip()]
    try:
        print(dump(model, texts, a.out, tokenizer=tokenizer, tokens=a.tokens, edges=a.edges, decode=a.decode, weights=not a.no_weights))
    except PlanError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
