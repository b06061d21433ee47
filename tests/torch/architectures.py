"""Architectures of the package transformers with tiny random weights: name -> (the model, its keyword arguments)."""

import torch
import transformers

TEXT = {"vocab_size": 61, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 32}
IMAGE = {"image_size": 16, "patch_size": 4, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
GROUPED = {**TEXT, "num_key_value_heads": 1, "head_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def _tokens(vocabulary=61):
    return {"input_ids": torch.randint(3, vocabulary, (2, 8))}


def _both(vocabulary=61):
    return {"input_ids": torch.randint(3, vocabulary, (2, 8)), "decoder_input_ids": torch.randint(3, vocabulary, (2, 5))}


def _image(size=16):
    return {"pixel_values": torch.randn(2, 3, size, size)}


def _wave():
    return {"input_values": torch.randn(2, 400)}


SEQUENCE = {"vocab_size": 61, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
            "decoder_start_token_id": 1, "forced_eos_token_id": None}  # fmt: skip
T5 = {"vocab_size": 61, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
SPEECH = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3),
          "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "apply_spec_augment": False}  # fmt: skip

ROWS = {  # name: (configuration, its options, model, arguments)
    "bert": ("Bert", TEXT, "BertModel", _tokens),
    "roberta": ("Roberta", {**TEXT, "max_position_embeddings": 34}, "RobertaModel", _tokens),
    "distilbert": ("DistilBert", {"vocab_size": 61, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 32}, "DistilBertModel", _tokens),
    "albert": ("Albert", {**TEXT, "embedding_size": 8}, "AlbertModel", _tokens),
    "electra": ("Electra", {**TEXT, "embedding_size": 8}, "ElectraModel", _tokens),
    "mpnet": ("MPNet", {**TEXT, "max_position_embeddings": 34}, "MPNetModel", _tokens),
    "deberta_v2": ("DebertaV2", TEXT, "DebertaV2Model", _tokens),
    "gpt2": ("GPT2", {"vocab_size": 61, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}, "GPT2LMHeadModel", _tokens),
    "gpt_neo": ("GPTNeo", {"vocab_size": 61, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 32},
                "GPTNeoForCausalLM", _tokens),
    "gpt_neox": ("GPTNeoX", TEXT, "GPTNeoXForCausalLM", _tokens),
    "gptj": ("GPTJ", {"vocab_size": 61, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "rotary_dim": 4}, "GPTJForCausalLM", _tokens),
    "opt": ("OPT", {**TEXT, "ffn_dim": 32, "word_embed_proj_dim": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}, "OPTForCausalLM", _tokens),
    "bloom": ("Bloom", {"vocab_size": 61, "hidden_size": 16, "n_layer": 2, "n_head": 2}, "BloomForCausalLM", _tokens),
    "llama": ("Llama", GROUPED, "LlamaForCausalLM", _tokens),
    "mistral": ("Mistral", GROUPED, "MistralForCausalLM", _tokens),
    "qwen2": ("Qwen2", GROUPED, "Qwen2ForCausalLM", _tokens),
    "qwen3": ("Qwen3", GROUPED, "Qwen3ForCausalLM", _tokens),
    "phi": ("Phi", {k: v for k, v in GROUPED.items() if k != "head_dim"}, "PhiForCausalLM", _tokens),
    "gemma": ("Gemma", GROUPED, "GemmaForCausalLM", _tokens),
    "gemma2": ("Gemma2", GROUPED, "Gemma2ForCausalLM", _tokens),
    "olmo": ("Olmo", {k: v for k, v in GROUPED.items() if k != "head_dim"}, "OlmoForCausalLM", _tokens),
    "stablelm": ("StableLm", {k: v for k, v in GROUPED.items() if k != "head_dim"}, "StableLmForCausalLM", _tokens),
    "t5": ("T5", T5, "T5Model", _both),
    "mt5": ("MT5", T5, "MT5Model", _both),
    "bart": ("Bart", SEQUENCE, "BartModel", _both),
    "pegasus": ("Pegasus", SEQUENCE, "PegasusModel", _both),
    "marian": ("Marian", SEQUENCE, "MarianModel", _both),
    "vit": ("ViT", IMAGE, "ViTModel", _image),
    "deit": ("DeiT", IMAGE, "DeiTModel", _image),
    "beit": ("Beit", IMAGE, "BeitModel", _image),
    "swin": ("Swin", {"image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "window_size": 2}, "SwinModel", _image),
    "resnet": ("ResNet", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}, "ResNetForImageClassification", lambda: _image(32)),
    "convnext": ("ConvNext", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}, "ConvNextModel", lambda: _image(32)),
    "mobilenet_v2": ("MobileNetV2", {"image_size": 32, "depth_multiplier": 0.25}, "MobileNetV2Model", lambda: _image(32)),
    "clip_vision": ("CLIPVision", IMAGE, "CLIPVisionModel", _image),
    "whisper": ("Whisper", {**SEQUENCE, "num_mel_bins": 8, "max_source_positions": 10, "max_target_positions": 16, "suppress_tokens": None, "begin_suppress_tokens": None},
                "WhisperModel", lambda: {"input_features": torch.randn(2, 8, 20), "decoder_input_ids": torch.randint(3, 61, (2, 5))}),
    "wav2vec2": ("Wav2Vec2", SPEECH, "Wav2Vec2Model", _wave),
    "hubert": ("Hubert", SPEECH, "HubertModel", _wave),
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
