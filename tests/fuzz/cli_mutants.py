#!/usr/bin/env python3
"""Damages one good file again and again and lets planish-cli read it; standard library only.

  python3 tests/fuzz/cli_mutants.py CLI GOOD [--count N] [--seed N] [--head BYTES] [-- VERB ARGUMENTS...]

`{file}` in the arguments is the damaged copy; without arguments: info {file}. --head damages only the first and last BYTES (the rest of a
large dump is numbers). Findings: death by a signal, more than 5 s, an error that does not name the file, more than 1.5 GiB of memory."""
import argparse, os, pathlib, random, resource, shutil, subprocess, sys, tempfile, time

SLOWEST, MOST_KILOBYTES = 5.0, 1536 * 1024


def damage(stream, size, rng, head):
    """Overwrites bytes in place (and perhaps cuts the end off); returns what must be written back."""
    undo = []
    for _ in range(rng.randint(1, 8)):
        if size > 2 * head:
            at = rng.choice([rng.randrange(head), size - 1 - rng.randrange(head)])
        else:
            at = rng.randrange(size)
        stream.seek(at)
        old = stream.read(rng.choice([1, 1, 2, 4, 8]))
        kind = rng.randrange(4)
        new = (bytes([old[0] ^ 1 << rng.randrange(8)]) + old[1:] if kind == 0 else rng.randbytes(len(old)) if kind == 1
               else b"\xff" * len(old) if kind == 2 else b"\0" * len(old))
        stream.seek(at)
        stream.write(new)
        undo.append((at, old))
    return undo


def main():
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("cli")
    parser.add_argument("good")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--head", type=int, default=1 << 17)
    options = parser.parse_args(sys.argv[1:split])
    arguments = sys.argv[split + 1:] or ["info", "{file}"]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="planish-mutants-"))
    file = folder / ("mutant" + pathlib.Path(options.good).suffix)
    shutil.copy(options.good, file)
    size, findings, codes, slowest = file.stat().st_size, 0, {}, 0.0
    command = [options.cli] + [a.replace("{file}", str(file)) for a in arguments]
    for seed in range(options.seed, options.seed + options.count):
        rng = random.Random(seed)
        with open(file, "r+b") as stream:
            undo = damage(stream, size, rng, options.head)
        if cut := rng.randrange(10) == 0:
            os.truncate(file, rng.randrange(size))
        start = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
            code, said = done.returncode, done.stderr
        except subprocess.TimeoutExpired:
            code, said = -1, "no answer"
        seconds = time.monotonic() - start
        slowest = max(slowest, seconds)
        codes[code] = codes.get(code, 0) + 1
        wrong = ("died" if code < 0 or code > 64 else f"took {seconds:.1f} s" if seconds > SLOWEST else
                 "names no file" if code != 0 and "mutant" not in said else "")
        if wrong:
            findings += 1
            print(f"FINDING seed {seed}: {wrong} (exit {code}): {said.strip()[:200]}", flush=True)
        if cut:
            shutil.copy(options.good, file)
        else:
            with open(file, "r+b") as stream:
                for at, old in reversed(undo):
                    stream.seek(at)
                    stream.write(old)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if memory > MOST_KILOBYTES:
        findings += 1
        print(f"FINDING memory grew to {memory // 1024} MiB")
    shutil.rmtree(folder)
    print(f"{options.count} mutants, exits {codes}, slowest {slowest:.2f} s, memory {memory // 1024} MiB, {findings} findings")
    return 1 if findings else 0


sys.exit(main())
