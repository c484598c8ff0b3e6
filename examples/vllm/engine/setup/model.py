"""Makes a tiny Llama with a tokenizer, and two LoRA adapters for it: model.py DIR

Files: DIR/model (no weights: vLLM makes random ones, the same in every server), DIR/lora-a, DIR/lora-b.
"""

import json
import pathlib
import sys

import torch
from pydoc_data.topics import topics  # 700 kB of English that every Python has
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 4096
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
HIDDEN, LAYERS, HEADS = 64, 2, 2  # 32 for each head is the least that attention on a CPU takes
CONTEXT = 131072
RANK = 8
TARGETS = ["q_proj", "v_proj"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))


def tokenizer(folder):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    t.train_from_iterator((topics[name] for name in sorted(topics)), trainer)
    write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "unk_token": "<|endoftext|>",
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            "chat_template": TEMPLATE,
        },
    )
    t.save(str(folder / "tokenizer.json"))


def model(folder):
    ends = {"eos_token_id": 2, "pad_token_id": 0}
    write(folder / "generation_config.json", ends)
    write(
        folder / "config.json",
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": HIDDEN,
            "head_dim": HIDDEN // HEADS,
            "intermediate_size": 2 * HIDDEN,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": HEADS,
            "vocab_size": VOCABULARY,
            "max_position_embeddings": CONTEXT,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            **ends,
        },
    )


def adapter(folder, seed):
    """An adapter in the layout of PEFT."""
    dice = torch.Generator().manual_seed(seed)
    weights = {}
    for layer in range(LAYERS):
        for target in TARGETS:
            name = f"base_model.model.model.layers.{layer}.self_attn.{target}"
            weights[f"{name}.lora_A.weight"] = torch.randn(RANK, HIDDEN, generator=dice) / 2
            weights[f"{name}.lora_B.weight"] = torch.randn(HIDDEN, RANK, generator=dice) / 2
    write(
        folder / "adapter_config.json",
        {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": 2 * RANK, "target_modules": TARGETS, "bias": "none"},
    )
    save_file(weights, folder / "adapter_model.safetensors")


home = pathlib.Path(sys.argv[1])
model(home / "model")
tokenizer(home / "model")
adapter(home / "lora-a", 1)
adapter(home / "lora-b", 2)
