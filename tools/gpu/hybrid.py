#!/usr/bin/env python3
"""Runs a model that does not fit a GPU's memory on the GPU and the processor together; prints a table in Markdown.

hybrid.py SHUNT [--model 8b:Q4_K] [--gpu vulkan:0] [--cpu cpu:simd] [--parts 0,0.25,0.5,0.75,1] [--prompt 512]
[--generate 64] [--repetitions 3] [--folder FOLDER] [--calibrate]

Plans may use GPU memory for these parts of the model's weights (1: all free memory). The last column but one is the
bound that memory sets on generation: the weights of each device, at the rate at which the processor alone reads memory
during the run, and at which the GPU alone reads weights. Needs only Python 3 and the program.
"""
import argparse
import pathlib
import sys
import tempfile

from speed import answer, model_file


def pool_of_host(shunt: str) -> str:
    return next(device["memory_pool"] for device in answer(shunt, "devices")["devices"] if device["type"] == "cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("--model", default="8b:Q4_K")
    parser.add_argument("--gpu", default="vulkan:0")
    parser.add_argument("--cpu", default="cpu:simd")
    parser.add_argument("--parts", default="0,0.25,0.5,0.75,1")
    parser.add_argument("--prompt", default="512")
    parser.add_argument("--generate", default="64")
    parser.add_argument("--repetitions", default="3")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--calibrate", action="store_true", help="measure the devices with the model's shapes before")
    options = parser.parse_args()
    file = str(model_file(options.shunt, options.model, options.folder))
    if options.calibrate:
        answer(options.shunt, "calibrate", file, "--quick", "--devices", f"{options.gpu},{options.cpu}")
    context = str(max(int(options.prompt), int(options.generate)))

    def bench(*more: str) -> dict:
        return answer(options.shunt, "bench", "model", file, "--prompt", options.prompt, "--generate", options.generate,
                      "--repetitions", options.repetitions, "-c", context, *more)

    def on_gpu(*more: str) -> int:
        plan = answer(options.shunt, "plan", file, "-c", context, *more)["generation"]
        host = pool_of_host(options.shunt)
        return sum(use["weight_bytes"] for use in plan["memory"] if use["pool"] != host)

    alone = bench("--devices", options.gpu)
    weights = alone["bytes_per_token"]
    gpu_bytes_per_s = weights * alone["generate_tokens_per_s"]["median"]
    print(f"| {options.model} | weights on the GPU | prompt {options.prompt}, tokens/s | predicted | generate {options.generate}, tokens/s | "
          "predicted | bound | reached |")
    print("|---|---|---|---|---|---|---|---|")

    def row(name: str, result: dict, held: int) -> None:
        prompt, generate = (result[f"{phase}_tokens_per_s"]["median"] for phase in ("prompt", "generate"))
        held = min(held, weights)
        bound = 1 / ((weights - held) / result["read_bytes_per_s"]["median"] + held / gpu_bytes_per_s)
        print(f"| {name} | {held / weights:.0%} | {prompt:.0f} | {result['predicted_prompt_tokens_per_s']:.0f} | {generate:.1f} | "
              f"{result['predicted_generate_tokens_per_s']:.1f} | {bound:.1f} | {generate / bound:.0%} |", flush=True)

    row(f"{options.gpu} alone", alone, weights)
    row(f"{options.cpu} alone", bench("--devices", options.cpu), 0)
    both = ("--devices", f"{options.gpu},{options.cpu}")
    for part in options.parts.split(","):
        budget = () if float(part) >= 1 else ("--budget", f"{options.gpu}={int(float(part) * weights)}B")
        row(f"both, {part}", bench(*both, *budget), on_gpu(*both, *budget))


if __name__ == "__main__":
    sys.exit(main())
