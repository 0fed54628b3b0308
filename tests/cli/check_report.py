#!/usr/bin/env python3
"""A report of a tiny model: every line of its Reproduce section and of its edges prints the numbers the page shows.

  python3 tests/cli/check_report.py PLANISH_CLI SOURCE_DIR
"""
import html
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

CLI, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
ENVIRONMENT = dict(os.environ, PLANISH_RESOURCES=str(SOURCE / "resources"))


def run(arguments, code=0):
    done = subprocess.run([CLI, *arguments], capture_output=True, text=True, timeout=240, env=ENVIRONMENT, check=False)
    if done.returncode != code:
        sys.exit(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout) if "--json" in arguments and code == 0 else done


def lines_of(page):
    for block in re.findall(r'<pre class="cli">(.*?)</pre>', page, re.S):
        yield from filter(None, html.unescape(block).splitlines())


def main():
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "a b's"  # a name a shell would tear apart
        place.mkdir()
        dump, model, plan, page = (str(place / name) for name in ("d.h5", "m.safetensors", "p.yaml", "r.html"))
        comparison, folded = str(place / "c.json"), str(place / "o.safetensors")
        run(["synth", "--out", dump, "--model-out", model, "--tokens", "192"])
        run(["plan", dump, "--weights", model, "--preset", "w8a8", "--effort", "quick", "--split-seed", "3", "--out", plan])
        made = run(["compare", dump, "--weights", model, "--edge", "layers.0.mlp_in", "--preset", "w8a8", "--effort", "quick", "--json"])
        pathlib.Path(comparison).write_text(json.dumps(made))
        run(["apply", plan, "--checkpoint", model, "--out", folded])
        run(["verify", plan, dump, "--checkpoint", model, "--transformed", folded])
        run(["report", dump, "--weights", model, "--plan", plan, "--comparison", comparison, "--out", page])
        text = pathlib.Path(page).read_text()
        data = json.loads(re.search(r'id="planish-data">(.*?)</script>', text, re.S).group(1))

        edges = {edge["edge"]: edge for edge in data["plan"]["edges"]}
        assert len(edges) == 9, sorted(edges)
        again = 0
        verbs = set()
        for line in lines_of(text):
            words = shlex.split(line)
            assert words[0] == "planish-cli", line
            verbs.add(words[1])
            if words[1] != "evaluate":
                continue
            evaluation = run([*words[1:], "--json"])
            assert evaluation["output"]["relative_frobenius"] == edges[evaluation["edge"]]["output"]["held_out"]["relative_frobenius"], line
            again += 1
        assert again == len(edges), again
        assert {"analyze", "plan", "check", "apply", "verify", "report", "evaluate"} <= verbs, verbs
        for measured in data["measured"]:
            assert measured["output"]["relative_frobenius"] == edges[measured["edge"]]["output"]["held_out"]["relative_frobenius"], measured["edge"]
        for edge in edges.values():
            assert f"{edge['output']['held_out']['relative_frobenius']:.17g}" in text
            assert f"{edge['output']['joint']['relative_frobenius']:.17g}" in text
        assert "Sealed rows opened 1 times" in text
        assert len(data["comparisons"]) == 1 and "comparison c.json" in text
        line = next(each for each in lines_of(text) if each.startswith("planish-cli plan "))
        remade = str(place / "p2.yaml")
        run([remade if word == plan else word for word in shlex.split(line)][1:])
        same = [re.sub(r"p2?\.[0-9a-f]{8}\.safetensors|x-command.*", "", pathlib.Path(file).read_text()) for file in (plan, remade)]
        assert same[0] == same[1], "the plan line made another plan"

        # A page that cannot be made leaves nothing.
        broken = str(place / "broken.html")
        failed = run(["report", dump, "--weights", model, "--plan", dump, "--out", broken], code=1)
        assert failed.stderr.startswith("error: ") and not pathlib.Path(broken).exists()
        failed = run(["report", dump, "--out", str(place / "no" / "r.html")], code=1)
        assert "r.html" in failed.stderr
    print("every line of the report prints its numbers again")


if __name__ == "__main__":
    main()
