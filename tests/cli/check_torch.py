#!/usr/bin/env python3
"""planish_torch.py and dump.py on real Hugging Face modules: a tiny Llama made of a synthetic checkpoint. Skipped by name without
torch and transformers.

  python3 tests/cli/check_torch.py PLANISH_CLI SOURCE_DIR
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CLI, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
try:
    import h5py
    import numpy as np
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, OPTConfig, OPTForCausalLM
except ImportError as missing:
    print(f"SKIPPED: {missing.name} is not installed for this interpreter")
    sys.exit(77)

ENVIRONMENT = dict(os.environ, PLANISH_RESOURCES=str(SOURCE / "resources"))
ENVIRONMENT.pop("LD_LIBRARY_PATH", None)
CANDIDATES = """schema: planish-candidates/1
defaults: {act: "%s", weight: "%s"}
candidates:
  - {name: none, method: none}
  - {name: it, method: [%s]}
"""
PLANS = [("{smoothquant: {alpha: 0.5}}", "int8:token", "int8:row"), ("{smoothquant: {stat: rms}}, {hadamard: {}}", "int4:token", "int4:row"),
         ("{awq: {}}", "none", "int4:group32:asym"), ("{svdquant: {}}", "int4:token", "int4:group32"), ("{llm_int8: {threshold: 2}}", "int8:token", "int8:row"),
         ("{duquant: {}}", "int4:token", "int4:row"), ("{wush: {}}", "mxfp4", "mxfp4"), ("{block_hadamard: {block: 16}}", "nvfp4", "nvfp4"),
         ("{omniquant: {steps: 3}}", "int4:token", "int4:group32"), ("{none: {}}", "int8:tensor:static", "int8:tensor"), ("{clip: {}}", "int4:token", "int4:row")]


def run(*arguments):
    done = subprocess.run([CLI, *arguments, "--json"], capture_output=True, text=True, timeout=240, env=ENVIRONMENT, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def relative(a, b):
    return float((a - b).norm() / b.norm())


class Road:
    """Checkpoint and dump of the synthetic Llama, and the same model as Hugging Face builds it."""

    def __init__(self, folder):
        from planish_plan import read_safetensors
        self.dump, self.checkpoint, self.folder = f"{folder}/d.h5", f"{folder}/m.safetensors", folder
        run("synth", "--out", self.dump, "--model-out", self.checkpoint, "--tokens", "192")
        self.read = read_safetensors
        with h5py.File(self.dump) as file:
            m = dict(file["model"].attrs)
            self.ids, self.request = file["tokens/id"][:], file["tokens/request"][:]
        self.config = LlamaConfig(hidden_size=int(m["hidden_size"]), intermediate_size=int(m["ffn_size"]), num_hidden_layers=int(m["num_layers"]),
                                  num_attention_heads=int(m["num_heads"]), num_key_value_heads=int(m["num_kv_heads"]), vocab_size=int(m["vocab_size"]),
                                  rms_norm_eps=float(m["norm_eps"]), rope_theta=float(m["rope_theta"]), tie_word_embeddings=False, attention_bias=False)
        self.config.architectures = ["LlamaForCausalLM"]

    def model(self, checkpoint=None, dtype=torch.float32):
        model = LlamaForCausalLM(self.config)
        state = {name: torch.as_tensor(np.array(value)) for name, value in self.read(checkpoint or self.checkpoint).items()}
        model.load_state_dict(state, strict=True)
        return model.to(dtype).eval()

    def logits(self, model):
        with torch.no_grad():
            return torch.cat([model(torch.as_tensor(self.ids[self.request == each][None].astype(np.int64))).logits.double() for each in np.unique(self.request)], 1)

    def plan(self, number, method, act, weight):
        file, plan = pathlib.Path(self.folder) / f"c{number}.yaml", f"{self.folder}/p{number}.yaml"
        file.write_text(CANDIDATES % (act, weight, method))
        run("plan", self.dump, "--weights", self.checkpoint, "--candidates", str(file), "--pin", "layers.*=it", "--allow-online", "--accept-joint", "--out", plan)
        return plan


def check_plans(road):
    from planish_plan import Plan
    from planish_torch import apply_plan
    plain = road.model(dtype=torch.float64)
    reference = road.logits(plain)
    for number, (method, act, weight) in enumerate(PLANS):
        file = road.plan(number, method, act, weight)
        model = road.model(dtype=torch.float64)
        apply_plan(model, file, quantize=False)
        change = relative(road.logits(model), reference)
        folded = f"{road.folder}/o{number}.safetensors"
        run("apply", file, "--checkpoint", road.checkpoint, "--out", folded, "--store", "f64")
        stored = {name: np.array(value) for name, value in road.read(folded).items()}
        differ = max((np.abs(parameter.numpy() - stored[name]).max() / np.abs(plain.state_dict()[name].numpy()).max()
                      for name, parameter in model.state_dict().items() if name in stored), default=0)
        print(f"{method} {act} {weight}: logits {change:.2e}, folded tensors against apply {differ:.2e}", end="")
        assert change < 1e-12, change
        assert differ < 1e-12, differ

        # Fake quantizers: every edge alone, so that the plan's own number is what must come out.
        worst, count = 0.0, 0
        plan = Plan(file)
        for a in plan.assignments:
            alone = Plan(file)
            alone.assignments = [each for each in alone.assignments if each.edge == a.edge]
            model = road.model(dtype=torch.float64)
            apply_plan(model, alone, dump=road.dump, check=False)
            ours = edge_error(road, alone.assignments[0], plan, model, plain)
            theirs = a.entry["output"]["held_out"]["relative_frobenius"]
            worst, count = max(worst, abs(ours - theirs) / theirs if theirs > 1e-9 else abs(ours - theirs)), count + 1
        print(f", {count} edges against evaluate {worst:.2e}")
        assert worst < 1e-6, worst


def edge_error(road, a, plan, model, plain):
    """Relative error of one edge on held-out rows through the model's own modules and their hooks."""
    from planish_numbers import forward_all
    held = [int(each) for each in plan.tree["calibration"]["held_out_requests"]]
    shift, operators = a.prefix
    total = energy = 0.0
    with h5py.File(road.dump) as file, torch.no_grad():
        values = file["edges/" + a.edge][:].astype(np.float64)
        for name in a.consumers:
            layer, role = name.rsplit(".", 1) if "." in name else ("", name)
            path = "lm_head" if role == "head" else f"model.{layer}.{'self_attn' if role in ('q_proj', 'k_proj', 'v_proj', 'o_proj') else 'mlp'}.{role}"
            requests = [values[road.request == each] for each in held]
            if a.act.sharing == "tensor" or a.act.format == "nvfp4":  # one range or scale over all scored rows: they pass together
                requests = [np.concatenate(requests)]
            for x in requests:
                y = model.get_submodule(path)(torch.as_tensor(forward_all(operators, x, shift=shift))[None])[0]
                y0 = torch.as_tensor(x) @ plain.get_submodule(path).weight.T
                total += float((y - y0).norm()) ** 2
                energy += float(y0.norm()) ** 2
    return (total / energy) ** 0.5


def check_refusals(road):
    from planish_torch import PlanError, apply_plan
    file = f"{road.folder}/p0.yaml"
    model = road.model()
    apply_plan(model, file)
    try:
        apply_plan(model, file)
        raise AssertionError("a plan was applied twice")
    except PlanError as error:
        assert "basis_mismatch" in str(error), error
    other = LlamaForCausalLM(road.config).eval()
    before = {name: value.clone() for name, value in other.state_dict().items()}
    try:
        apply_plan(other, file)
        raise AssertionError("a plan was applied to another model")
    except PlanError:
        assert all(torch.equal(before[name], value) for name, value in other.state_dict().items())
    for dtype in (torch.float16, torch.bfloat16):
        half = road.model(dtype=torch.float32)
        with torch.no_grad():
            for parameter in half.parameters():
                parameter.copy_(parameter.to(dtype))
        from safetensors.torch import save_file
        save_file({name: value.to(dtype).contiguous() for name, value in half.state_dict().items()}, f"{road.folder}/h.safetensors")
        plan = f"{road.folder}/h.yaml"
        run("plan", road.dump, "--weights", f"{road.folder}/h.safetensors", "--preset", "w8a8", "--effort", "quick", "--pin", "*.mlp_in=smoothquant alpha=.5",
            "--accept-joint", "--out", plan)
        apply_plan(half, plan)  # loaded as float32, the basis hash is over the 16-bit bytes


def check_dump(road):
    from planish_torch import dump
    texts = [road.ids[road.request == each].tolist() for each in np.unique(road.request)]
    out = f"{road.folder}/again.h5"
    model = road.model()
    calls, real = [], model.forward

    def stopping(*a, **k):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*a, **k)
    model.forward = stopping
    try:
        dump(model, texts, out, quiet=True)
    except KeyboardInterrupt:
        pass
    assert not os.path.exists(out) and os.path.exists(out + ".part")
    dump(model, texts, out, quiet=True)
    assert len(calls) == 1 + len(texts), "finished requests were run again"
    with h5py.File(out) as ours, h5py.File(road.dump) as theirs:
        assert set(theirs["edges"]) == set(ours["edges"]), set(theirs["edges"]) ^ set(ours["edges"])
        for name in theirs["edges"]:
            a, b = ours["edges/" + name], theirs["edges/" + name]
            assert np.abs(a[:] - b[:]).max() < 2e-5 * np.abs(b[:]).max(), name
            for key in ("layer", "site", "producer"):
                assert a.attrs[key] == b.attrs[key], (name, key)
            assert list(a.attrs["consumers"]) == list(b.attrs["consumers"]), name
        for name in ("id", "request", "position", "phase"):
            assert (ours["tokens/" + name][:] == theirs["tokens/" + name][:]).all(), name
    info = run("info", out)
    assert info["layout"] == "native" and not info["refused"], info["refused"]
    a, b = (run("evaluate", file, *rest, "--edge", "layers.0.mlp_down", "--method", "smoothquant", "--act", "int8:token", "--weight", "int8:row")
            for file, rest in ((out, ()), (road.dump, ("--weights", road.checkpoint))))
    assert abs(a["output"]["relative_frobenius"] - b["output"]["relative_frobenius"]) < 1e-3 * b["output"]["relative_frobenius"]

    # Left padding is kept and masked; decode rows carry phase 1.
    ids = torch.zeros(2, 8, dtype=torch.long)
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[0, :3] = 0
    dump(road.model(), {"input_ids": ids, "attention_mask": mask}, f"{road.folder}/pad.h5", decode=2, edges="layers.*.attn_in", quiet=True)
    with h5py.File(f"{road.folder}/pad.h5") as file:
        assert file["tokens/mask"][:].tolist() == [0] * 3 + [1] * 17
        assert file["tokens/phase"][:].tolist() == ([0] * 8 + [1] * 2) * 2
        assert file["tokens/position"][:10].tolist() == [0, 0, 0, 0, 1, 2, 3, 4, 5, 6]
        assert set(file["edges"]) == {"layers.0.attn_in", "layers.1.attn_in"}
    assert run("info", f"{road.folder}/pad.h5")["tokens"]["masked"] == 3


def check_families(folder):
    """Conv1D, fused rows, biases and a tied head; shifts need biases: OPT and GPT-2."""
    from planish_torch import apply_plan, dump
    torch.manual_seed(0)
    gpt2 = GPT2LMHeadModel(GPT2Config(n_embd=96, n_layer=2, n_head=6, vocab_size=64, n_positions=64)).double().eval()
    gpt2.config.architectures = ["GPT2LMHeadModel"]
    opt = OPTForCausalLM(OPTConfig(hidden_size=96, ffn_dim=160, num_hidden_layers=2, num_attention_heads=6, vocab_size=64, max_position_embeddings=64,
                                   word_embed_proj_dim=96)).eval()
    opt.config.architectures = ["OPTForCausalLM"]
    for name, model in (("gpt2", gpt2), ("opt", opt)):
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        ids = torch.randint(0, 64, (8, 24))
        file, plan, checkpoint = f"{folder}/{name}.h5", f"{folder}/{name}.yaml", f"{folder}/{name}.safetensors"
        dump(model.float(), list(ids), file, quiet=True)
        from safetensors.torch import save_file
        state = {key: value.contiguous().clone() for key, value in model.state_dict().items() if not key.endswith((".attn.bias", "masked_bias")) and key != "lm_head.weight"}
        save_file(state, checkpoint)
        pathlib.Path(f"{folder}/config.json").write_text(model.config.to_json_string(use_diff=False))
        candidates = pathlib.Path(folder) / "os.yaml"
        candidates.write_text(CANDIDATES % ("int8:token", "int8:row", "{os_plus: {}}"))
        made = run("plan", file, "--weights", checkpoint, "--config", f"{folder}/config.json", "--candidates", str(candidates), "--pin", "*.attn_in=it", "--pin", "*.mlp_in=it",
                   "--accept-joint", "--out", plan)
        assert sum(edge["chosen"] == "it" for edge in made["edges"]) >= 4, made["edges"]
        if name == "gpt2":  # this OPT builds its mask in float32 only
            model.double()
        with torch.no_grad():
            before = model(ids).logits
            apply_plan(model, plan, quantize=False)
            after = model(ids).logits
        print(f"{name} with shifts: logits {relative(after, before):.2e}")
        assert relative(after, before) < (1e-11 if name == "gpt2" else 1e-5)


def main():
    with tempfile.TemporaryDirectory() as folder:
        bridge = f"{folder}/bridge"
        files = run("python", "--out", bridge)
        assert {"planish_torch.py", "dump.py"} <= {pathlib.Path(each["file"]).name for each in files["files"]}, files
        sys.path.insert(0, bridge)
        road = Road(folder)
        check_plans(road)
        check_refusals(road)
        check_dump(road)
        check_families(folder)
    print(f"torch {torch.__version__}: plans, refusals, dump and families agree")


if __name__ == "__main__":
    main()
