#!/usr/bin/env python3
"""Tiny random models of each architecture, with the logits that Hugging Face transformers computes from them.

architectures.py FOLDER [NAME...]

Needs torch, numpy and transformers 5. Writes FOLDER/NAME.gguf, with keys, tensor names and layouts as llama.cpp's
converter writes them; weights of matrices are F16, and transformers computes with the same values in F32. Two more keys:
  shunt.reference.tokens  I32 [48], the ids that were given
  shunt.reference.logits  F32 [48 * vocabulary], the logits after each of them
The tokens are bytes, so that any text can be given; what a model says is noise.
"""
import argparse
import math
import pathlib
import struct
import sys

import numpy
import torch
import transformers

HIDDEN, LAYERS, HEADS, KV_HEADS, FEED_FORWARD, CONTEXT, TOKENS = 64, 2, 4, 2, 96, 256, 48
VOCABULARY = 3 + 256
HEAD_DIM = 32  # where it is chosen freely, unlike HIDDEN / HEADS
WINDOW = 12
EXPERTS = {"num_experts_per_tok": 2, "intermediate_size": FEED_FORWARD}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "truncate": False, "original_max_position_embeddings": 64}


def longrope(original: int) -> dict:
    pairs = HIDDEN // HEADS // 2
    return {"original_max_position_embeddings": original,
            "rope_parameters": {"rope_type": "longrope", "rope_theta": 10000.0,
                                "short_factor": [1.0 + 0.05 * i for i in range(pairs)],
                                "long_factor": [1.5 + 0.7 * i for i in range(pairs)],
                                "original_max_position_embeddings": original}}


# name -> (architecture in the file, class of transformers, arguments of its configuration)
FAMILIES = {
    "llama": ("llama", "Llama", {"attention_bias": True}),
    "llama3": ("llama", "Llama", {"head_dim": HEAD_DIM, "rope_parameters": LLAMA3}),
    "mistral": ("llama", "Mistral", {"head_dim": HEAD_DIM, "sliding_window": None}),
    "smollm": ("llama", "Llama", {"tie_word_embeddings": True}),
    "mixtral": ("llama", "Mixtral", {**EXPERTS, "num_local_experts": 4, "sliding_window": None}),
    "qwen2": ("qwen2", "Qwen2", {"tie_word_embeddings": True}),
    "qwen2moe": ("qwen2moe", "Qwen2Moe", {**EXPERTS, "num_experts": 4, "moe_intermediate_size": 48,
                                          "shared_expert_intermediate_size": 64, "norm_topk_prob": False}),
    "qwen3": ("qwen3", "Qwen3", {"head_dim": HEAD_DIM}),
    "qwen3moe": ("qwen3moe", "Qwen3Moe", {**EXPERTS, "num_experts": 4, "moe_intermediate_size": 48,
                                          "norm_topk_prob": True, "head_dim": HEAD_DIM}),
    "gemma2": ("gemma2", "Gemma2", {"head_dim": HEAD_DIM, "query_pre_attn_scalar": HEAD_DIM, "sliding_window": WINDOW,
                                    "attn_logit_softcapping": 2.0, "final_logit_softcapping": 10.0}),
    "gemma3": ("gemma3", "Gemma3", {
        "num_hidden_layers": 7, "head_dim": HEAD_DIM, "query_pre_attn_scalar": HEAD_DIM, "sliding_window": WINDOW,
        "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0}}}),
    "phi3": ("phi3", "Phi3", {"sliding_window": None, **longrope(32)}),
    "phi3-short": ("phi3", "Phi3", {"sliding_window": WINDOW, **longrope(64)}),
    "granite": ("granite", "Granite", {"embedding_multiplier": 3.0, "residual_multiplier": 0.4,
                                       "attention_multiplier": 0.15, "logits_scaling": 5.0,
                                       "tie_word_embeddings": True}),
    "smollm3": ("smollm3", "SmolLM3", {"num_hidden_layers": 4, "tie_word_embeddings": True}),
    "gpt-oss": ("gpt-oss", "GptOss", {"num_experts_per_tok": 2, "num_local_experts": 4, "intermediate_size": 48,
                                      "head_dim": HEAD_DIM, "sliding_window": WINDOW, "rope_parameters": YARN}),
}

# Parts of names in transformers -> in files.
PARTS = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.qkv_proj": "attn_qkv", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up", "mlp.gate": "ffn_gate_inp",
    "mlp.router": "ffn_gate_inp", "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp", "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
}
PARTS_OF = {
    "gemma": {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
              "post_feedforward_layernorm": "post_ffw_norm"},
    "gpt-oss": {"post_attention_layernorm": "post_attention_norm"},
}


def make_model(name: str) -> torch.nn.Module:
    architecture, family, changes = FAMILIES[name]
    text = "Text" if family == "Gemma3" else ""
    arguments = {"vocab_size": VOCABULARY, "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
                 "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "intermediate_size": FEED_FORWARD,
                 "max_position_embeddings": CONTEXT, "tie_word_embeddings": architecture.startswith("gemma"),
                 "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, **changes}
    config = getattr(transformers, f"{family}{text}Config")(**arguments)
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{family}ForCausalLM")(config).float().eval()
    randomize(model, architecture, sum(name.encode()))
    return model


def randomize(model: torch.nn.Module, architecture: str, seed: int) -> None:
    """Values of a size that shows each part of the model in its logits."""
    generator = torch.Generator().manual_seed(seed)
    norm = 0.0 if architecture.startswith("gemma") else 1.0  # Gemma's norms multiply by 1 + weight
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim == 1 or "bias" in name:
                parameter.copy_(0.3 * noise + (norm if "norm" in name else 0.0))
                continue
            swapped = architecture == "gpt-oss" and "experts" in name  # [experts, in, out]
            fan_in = 1 if "embed_tokens" in name else parameter.shape[-2 if swapped else -1]
            parameter.copy_((noise / math.sqrt(fan_in)).half())


def interleaved(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of a head from (0 .. n/2, n/2 .. n) to pairs, as the files of the llama family have them."""
    return tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, -1).transpose(1, 2).reshape(tensor.shape)


def expert_tensors(part: str, tensor: torch.Tensor, architecture: str) -> dict:
    """Of one stack of experts, whose gate and up parts are one tensor in transformers."""
    kind = "bias" if part.endswith("_bias") else "weight"
    is_down = "down_proj" in part
    if architecture == "gpt-oss":  # gate and up alternate, and matrices are [in, out]
        tensor = tensor if kind == "bias" else tensor.transpose(1, 2)
        halves = (tensor[:, ::2], tensor[:, 1::2])
    else:
        halves = tensor.chunk(2, dim=1)
    if is_down:
        return {f"ffn_down_exps.{kind}": tensor}
    return {f"ffn_gate_exps.{kind}": halves[0], f"ffn_up_exps.{kind}": halves[1]}


def layer_tensors(part: str, tensor: torch.Tensor, architecture: str, config) -> dict:
    part = part.replace("block_sparse_moe.", "mlp.")
    if part.startswith("mlp.experts."):
        return expert_tensors(part, tensor, architecture)
    if part == "self_attn.sinks":
        return {"attn_sinks.weight": tensor}
    stem, kind = part.rsplit(".", 1)
    parts = {**PARTS, **PARTS_OF.get("gemma" if architecture.startswith("gemma") else architecture, {})}
    if architecture in ("llama", "granite", "smollm3") and stem in ("self_attn.q_proj", "self_attn.k_proj"):
        heads = config.num_attention_heads if "q_proj" in stem else config.num_key_value_heads
        tensor = interleaved(tensor, heads)
    return {f"{parts[stem]}.{kind}": tensor}


def tensors_of(model: torch.nn.Module, architecture: str) -> dict:
    result = {}
    for name, parameter in model.named_parameters():
        tensor = parameter.detach()
        if architecture.startswith("gemma") and "norm" in name:
            tensor = tensor + 1
        if name.startswith("model.layers."):
            layer, part = name.removeprefix("model.layers.").split(".", 1)
            made = layer_tensors(part, tensor, architecture, model.config)
            result |= {f"blk.{layer}.{key}": value for key, value in made.items()}
        else:
            names = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
                     "lm_head.weight": "output.weight"}
            result[names[name]] = tensor
    rope = getattr(model.config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "llama3":
        result["rope_freqs.weight"] = llama3_factors(rope, HEAD_DIM)
    if rope.get("rope_type") == "longrope":
        for kind in ("long", "short"):
            result[f"rope_factors_{kind}.weight"] = torch.tensor(rope[f"{kind}_factor"])
    return result


def llama3_factors(rope: dict, dims: int) -> torch.Tensor:
    """What divides each frequency (https://github.com/meta-llama/llama-models, apply_scaling)."""
    wavelengths = 2 * math.pi * rope["rope_theta"] ** (torch.arange(0, dims, 2).double() / dims)
    original, low, high = (rope[key] for key in ("original_max_position_embeddings", "low_freq_factor",
                                                 "high_freq_factor"))
    smooth = ((original / wavelengths - low) / (high - low)).clamp(0, 1)
    return (1 / ((1 - smooth) / rope["factor"] + smooth)).float()


def keys_of(config, architecture: str) -> dict:
    rope = config.rope_parameters
    base = rope.get("full_attention", rope)
    head_dim = getattr(config, "head_dim", None) or HIDDEN // HEADS
    keys = {"block_count": config.num_hidden_layers, "context_length": CONTEXT, "embedding_length": HIDDEN,
            "feed_forward_length": config.intermediate_size, "attention.head_count": HEADS,
            "attention.head_count_kv": KV_HEADS, "attention.key_length": head_dim, "attention.value_length": head_dim,
            "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps), "rope.freq_base": float(base["rope_theta"]),
            "rope.dimension_count": head_dim, "vocab_size": VOCABULARY}
    experts = getattr(config, "num_local_experts", None) or getattr(config, "num_experts", None)
    if experts:
        keys |= {"expert_count": experts, "expert_used_count": config.num_experts_per_tok}
        own = config.intermediate_size if architecture == "gpt-oss" else getattr(config, "moe_intermediate_size", None)
        if own:
            keys["expert_feed_forward_length"] = own
    if architecture == "qwen2moe":
        keys["expert_shared_feed_forward_length"] = config.shared_expert_intermediate_size
    if getattr(config, "sliding_window", None) and architecture != "smollm3":
        keys["attention.sliding_window"] = config.sliding_window
    if architecture == "gemma2":
        keys |= {"attn_logit_softcapping": config.attn_logit_softcapping,
                 "final_logit_softcapping": config.final_logit_softcapping}
    if architecture == "granite":
        keys |= {"attention.scale": config.attention_multiplier, "embedding_scale": config.embedding_multiplier,
                 "residual_scale": config.residual_multiplier, "logit_scale": config.logits_scaling}
    if base["rope_type"] in ("linear", "yarn"):
        keys |= {"rope.scaling.type": base["rope_type"], "rope.scaling.factor": base["factor"]}
    if base["rope_type"] == "yarn":
        keys["rope.scaling.original_context_length"] = base["original_max_position_embeddings"]
    if base["rope_type"] == "longrope":
        original = base["original_max_position_embeddings"]
        keys |= {"rope.scaling.original_context_length": original,
                 "rope.scaling.attn_factor": math.sqrt(1 + math.log(CONTEXT / original) / math.log(original))}
    return {f"{architecture}.{key}": value for key, value in keys.items()}


def tokenizer_keys() -> dict:
    return {"tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))],
            "tokenizer.ggml.scores": [0.0] * VOCABULARY,
            "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256,
            "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0}


# The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
def packed_text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def packed_scalar(value) -> tuple[int, bytes]:
    if isinstance(value, str):
        return 8, packed_text(value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    return (5, struct.pack("<i", value)) if value < 0 else (4, struct.pack("<I", value))


def packed_value(value) -> bytes:
    if not isinstance(value, list):
        kind, data = packed_scalar(value)
        return struct.pack("<I", kind) + data
    if isinstance(value[0], int):
        kind, data = 5, b"".join(struct.pack("<i", each) for each in value)
    else:
        kind = packed_scalar(value[0])[0]
        data = b"".join(packed_scalar(each)[1] for each in value)
    return struct.pack("<IIQ", 9, kind, len(value)) + data


def write_gguf(path: pathlib.Path, keys: dict, tensors: dict) -> None:
    header = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(keys))]
    header += [packed_text(key) + packed_value(value) for key, value in keys.items()]
    body = b""
    for name, tensor in tensors.items():
        is_plain = tensor.ndim == 1 or name.endswith(".bias")
        data = tensor.contiguous().numpy().astype(numpy.float32 if is_plain else numpy.float16)
        header.append(packed_text(name) + struct.pack("<I", data.ndim) +
                      b"".join(struct.pack("<Q", extent) for extent in reversed(data.shape)) +
                      struct.pack("<IQ", 0 if is_plain else 1, len(body)))
        body += data.tobytes()
        body += bytes(-len(body) % 32)
    head = b"".join(header)
    path.write_bytes(head + bytes(-len(head) % 32) + body)


def write_family(folder: pathlib.Path, name: str) -> None:
    architecture = FAMILIES[name][0]
    model = make_model(name)
    ids = torch.randint(3, VOCABULARY, (TOKENS,), generator=torch.Generator().manual_seed(len(name)))
    with torch.no_grad():
        logits = model(input_ids=ids[None]).logits[0]
    keys = {"general.architecture": architecture, "general.name": f"tiny random {name}", "general.file_type": 1,
            **keys_of(model.config, architecture), **tokenizer_keys(), "shunt.reference.tokens": ids.tolist(),
            "shunt.reference.logits": logits.flatten().tolist()}
    path = folder / f"{name}.gguf"
    write_gguf(path, keys, tensors_of(model, architecture))
    print(f"{path}: {path.stat().st_size} bytes, largest logit {logits.abs().max():.3f}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(FAMILIES)}; without one, all")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in options.names or FAMILIES:
        try:
            write_family(options.folder, name)
        except Exception as error:  # each family stands alone
            failed.append(name)
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    if failed:
        sys.exit(f"architectures.py: not written: {', '.join(failed)}")


if __name__ == "__main__":
    main()
