"""Architectures of the package transformers with tiny random weights: name -> (the model, its keyword arguments)."""

import torch
import transformers

TEXT = {"vocab_size": 61, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 32}
IMAGE = {"image_size": 16, "patch_size": 4, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
GROUPED = {**TEXT, "num_key_value_heads": 1, "head_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def tokens(vocabulary=61):
    return {"input_ids": torch.randint(3, vocabulary, (2, 8))}


def both(vocabulary=61):
    return {"input_ids": torch.randint(3, vocabulary, (2, 8)), "decoder_input_ids": torch.randint(3, vocabulary, (2, 5))}


def image(size=16):
    return {"pixel_values": torch.randn(2, 3, size, size)}


def wave():
    return {"input_values": torch.randn(2, 400)}


SEQUENCE = {"vocab_size": 61, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
            "decoder_start_token_id": 1, "forced_eos_token_id": None}  # fmt: skip
T5 = {"vocab_size": 61, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
SPEECH = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3),
          "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "apply_spec_augment": False}  # fmt: skip

ROWS = {  # name: (configuration, its options, model, arguments)
    "bert": ("Bert", TEXT, "BertModel", tokens),
    "roberta": ("Roberta", {**TEXT, "max_position_embeddings": 34}, "RobertaModel", tokens),
    "distilbert": ("DistilBert", {"vocab_size": 61, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 32}, "DistilBertModel", tokens),
    "albert": ("Albert", {**TEXT, "embedding_size": 8}, "AlbertModel", tokens),
    "electra": ("Electra", {**TEXT, "embedding_size": 8}, "ElectraModel", tokens),
    "mpnet": ("MPNet", {**TEXT, "max_position_embeddings": 34}, "MPNetModel", tokens),
    "deberta_v2": ("DebertaV2", TEXT, "DebertaV2Model", tokens),
    "gpt2": ("GPT2", {"vocab_size": 61, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}, "GPT2LMHeadModel", tokens),
    "gpt_neo": ("GPTNeo", {"vocab_size": 61, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 32},
                "GPTNeoForCausalLM", tokens),
    "gpt_neox": ("GPTNeoX", TEXT, "GPTNeoXForCausalLM", tokens),
    "gptj": ("GPTJ", {"vocab_size": 61, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "rotary_dim": 4}, "GPTJForCausalLM", tokens),
    "opt": ("OPT", {**TEXT, "ffn_dim": 32, "word_embed_proj_dim": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}, "OPTForCausalLM", tokens),
    "bloom": ("Bloom", {"vocab_size": 61, "hidden_size": 16, "n_layer": 2, "n_head": 2}, "BloomForCausalLM", tokens),
    "llama": ("Llama", GROUPED, "LlamaForCausalLM", tokens),
    "mistral": ("Mistral", GROUPED, "MistralForCausalLM", tokens),
    "qwen2": ("Qwen2", GROUPED, "Qwen2ForCausalLM", tokens),
    "qwen3": ("Qwen3", GROUPED, "Qwen3ForCausalLM", tokens),
    "phi": ("Phi", {k: v for k, v in GROUPED.items() if k != "head_dim"}, "PhiForCausalLM", tokens),
    "gemma": ("Gemma", GROUPED, "GemmaForCausalLM", tokens),
    "gemma2": ("Gemma2", GROUPED, "Gemma2ForCausalLM", tokens),
    "olmo": ("Olmo", {k: v for k, v in GROUPED.items() if k != "head_dim"}, "OlmoForCausalLM", tokens),
    "stablelm": ("StableLm", {k: v for k, v in GROUPED.items() if k != "head_dim"}, "StableLmForCausalLM", tokens),
    "t5": ("T5", T5, "T5Model", both),
    "mt5": ("MT5", T5, "MT5Model", both),
    "bart": ("Bart", SEQUENCE, "BartModel", both),
    "pegasus": ("Pegasus", SEQUENCE, "PegasusModel", both),
    "marian": ("Marian", SEQUENCE, "MarianModel", both),
    "vit": ("ViT", IMAGE, "ViTModel", image),
    "deit": ("DeiT", IMAGE, "DeiTModel", image),
    "beit": ("Beit", IMAGE, "BeitModel", image),
    "swin": ("Swin", {"image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "window_size": 2}, "SwinModel", image),
    "resnet": ("ResNet", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}, "ResNetForImageClassification", lambda: image(32)),
    "convnext": ("ConvNext", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}, "ConvNextModel", lambda: image(32)),
    "mobilenet_v2": ("MobileNetV2", {"image_size": 32, "depth_multiplier": 0.25}, "MobileNetV2Model", lambda: image(32)),
    "clip_vision": ("CLIPVision", IMAGE, "CLIPVisionModel", image),
    "whisper": ("Whisper", {**SEQUENCE, "num_mel_bins": 8, "max_source_positions": 10, "max_target_positions": 16, "suppress_tokens": None, "begin_suppress_tokens": None},
                "WhisperModel", lambda: {"input_features": torch.randn(2, 8, 20), "decoder_input_ids": torch.randint(3, 61, (2, 5))}),
    "wav2vec2": ("Wav2Vec2", SPEECH, "Wav2Vec2Model", wave),
    "hubert": ("Hubert", SPEECH, "HubertModel", wave),
}  # fmt: skip


def architecture(name):
    """The model in evaluation mode, and its keyword arguments."""
    configuration, options, model, arguments = ROWS[name]
    torch.manual_seed(0)
    config = getattr(transformers, configuration + "Config")(**options)
    config.use_cache = False
    config.return_dict = True
    made = getattr(transformers, model)(config).eval()
    return made, arguments()
