#include "core/synth/synth_shapes.h"

namespace planish {

namespace {

using Names = std::map<std::string, std::string>;

SynthShape llamaLike(const std::string &family, const std::string &architecture)
{
    SynthShape s;
    s.family = family;
    s.architecture = architecture;
    s.q = "q_proj", s.k = "k_proj", s.v = "v_proj", s.o = "o_proj", s.gate = "gate_proj", s.up = "up_proj", s.down = "down_proj";
    s.attentionNorm = "layers.{l}.input_layernorm";
    s.mlpNorm = "layers.{l}.post_attention_layernorm";
    s.finalNormName = "norm";
    const std::string layer = "model.layers.{l}.";
    s.stored = {{"embed", "model.embed_tokens"}, {"head", "lm_head"}, {"norm", "model.norm"}};
    for (const char *role : {"q_proj", "k_proj", "v_proj", "o_proj"})
        s.stored["layers.{l}." + std::string(role)] = layer + "self_attn." + role;
    for (const char *role : {"gate_proj", "up_proj", "down_proj"})
        s.stored["layers.{l}." + std::string(role)] = layer + "mlp." + role;
    s.stored[s.attentionNorm] = layer + "input_layernorm";
    s.stored[s.mlpNorm] = layer + "post_attention_layernorm";
    return s;
}

SynthShape qwen3()
{
    SynthShape s = llamaLike("qwen3", "Qwen3ForCausalLM");
    s.qkNorm = true;
    s.stored["layers.{l}.q_norm"] = "model.layers.{l}.self_attn.q_norm";
    s.stored["layers.{l}.k_norm"] = "model.layers.{l}.self_attn.k_norm";
    return s;
}

SynthShape gemma()
{
    SynthShape s = llamaLike("gemma", "GemmaForCausalLM");
    s.normOffset = 1;
    s.activation = "gelu_tanh";
    s.scaleEmbedding = true;
    s.alwaysTied = true;
    return s;
}

SynthShape phi3()
{
    SynthShape s = llamaLike("phi3", "Phi3ForCausalLM");
    s.fusedQkv = s.fusedGateUp = true;
    s.stored["layers.{l}.qkv_proj"] = "model.layers.{l}.self_attn.qkv_proj";
    s.stored["layers.{l}.gate_up_proj"] = "model.layers.{l}.mlp.gate_up_proj";
    for (const char *role : {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"})
        s.stored.erase("layers.{l}." + std::string(role));
    return s;
}

SynthShape mixtral()
{
    SynthShape s = llamaLike("mixtral", "MixtralForCausalLM");
    s.experts = 4;
    for (const char *role : {"gate_proj", "up_proj", "down_proj"})
        s.stored.erase("layers.{l}." + std::string(role));
    const std::string moe = "model.layers.{l}.block_sparse_moe.";
    s.stored["layers.{l}.gate"] = moe + "gate";
    s.stored["layers.{l}.experts.{e}.gate_proj"] = moe + "experts.{e}.w1";
    s.stored["layers.{l}.experts.{e}.up_proj"] = moe + "experts.{e}.w3";
    s.stored["layers.{l}.experts.{e}.down_proj"] = moe + "experts.{e}.w2";
    return s;
}

SynthShape gpt2()
{
    SynthShape s;
    s.family = "gpt2";
    s.architecture = "GPT2LMHeadModel";
    s.rmsNorm = false, s.normBias = s.linearBias = s.keyBias = true;
    s.gated = s.rope = false, s.learnedPositions = true, s.fusedQkv = s.inOut = true, s.alwaysTied = true;
    s.activation = "gelu_tanh";
    s.q = "q_proj", s.k = "k_proj", s.v = "v_proj", s.o = "c_proj", s.up = "c_fc", s.down = "mlp.c_proj";
    s.attentionNorm = "layers.{l}.ln_1", s.mlpNorm = "layers.{l}.ln_2", s.finalNormName = "norm";
    const std::string layer = "transformer.h.{l}.";
    s.stored = {{"embed", "transformer.wte"},
                {"embed_positions", "transformer.wpe"},
                {"norm", "transformer.ln_f"},
                {"layers.{l}.ln_1", layer + "ln_1"},
                {"layers.{l}.ln_2", layer + "ln_2"},
                {"layers.{l}.qkv_proj", layer + "attn.c_attn"},
                {"layers.{l}.c_proj", layer + "attn.c_proj"},
                {"layers.{l}.c_fc", layer + "mlp.c_fc"},
                {"layers.{l}.mlp.c_proj", layer + "mlp.c_proj"}};
    return s;
}

SynthShape opt()
{
    SynthShape s;
    s.family = "opt";
    s.architecture = "OPTForCausalLM";
    s.rmsNorm = false, s.normBias = s.linearBias = s.keyBias = true;
    s.gated = s.rope = false, s.learnedPositions = true, s.positionOffset = 2, s.alwaysTied = true;
    s.activation = "relu";
    s.q = "q_proj", s.k = "k_proj", s.v = "v_proj", s.o = "out_proj", s.up = "fc1", s.down = "fc2";
    s.attentionNorm = "layers.{l}.self_attn_layer_norm", s.mlpNorm = "layers.{l}.final_layer_norm", s.finalNormName = "norm";
    const std::string layer = "model.decoder.layers.{l}.";
    s.stored = {{"embed", "model.decoder.embed_tokens"}, {"embed_positions", "model.decoder.embed_positions"}, {"norm", "model.decoder.final_layer_norm"}};
    for (const char *role : {"q_proj", "k_proj", "v_proj", "out_proj"})
        s.stored["layers.{l}." + std::string(role)] = layer + "self_attn." + role;
    for (const char *role : {"fc1", "fc2", "self_attn_layer_norm", "final_layer_norm"})
        s.stored["layers.{l}." + std::string(role)] = layer + role;
    return s;
}

SynthShape falcon()
{
    SynthShape s;
    s.family = "falcon";
    s.architecture = "FalconForCausalLM";
    s.rmsNorm = false, s.normBias = true, s.gated = false, s.parallel = true, s.fusedQkv = true, s.alwaysTied = true;
    s.activation = "gelu";
    s.q = "q_proj", s.k = "k_proj", s.v = "v_proj", s.o = "dense", s.up = "dense_h_to_4h", s.down = "dense_4h_to_h";
    s.attentionNorm = s.mlpNorm = "layers.{l}.input_layernorm", s.finalNormName = "norm";
    const std::string layer = "transformer.h.{l}.";
    s.stored = {{"embed", "transformer.word_embeddings"},
                {"norm", "transformer.ln_f"},
                {"layers.{l}.input_layernorm", layer + "input_layernorm"},
                {"layers.{l}.qkv_proj", layer + "self_attention.query_key_value"},
                {"layers.{l}.dense", layer + "self_attention.dense"},
                {"layers.{l}.dense_h_to_4h", layer + "mlp.dense_h_to_4h"},
                {"layers.{l}.dense_4h_to_h", layer + "mlp.dense_4h_to_h"}};
    return s;
}

SynthShape bert()
{
    SynthShape s;
    s.family = "bert";
    s.architecture = "BertModel";
    s.rmsNorm = false, s.normBias = s.linearBias = s.keyBias = true;
    s.postNorm = true, s.gated = s.rope = s.causal = s.finalNorm = false, s.learnedPositions = true;
    s.activation = "gelu";
    s.q = "query", s.k = "key", s.v = "value", s.o = "attention_output", s.up = "fc1", s.down = "fc2";
    s.attentionNorm = "layers.{l}.attention_layernorm", s.mlpNorm = "layers.{l}.output_layernorm", s.embeddingNorm = "embeddings.layernorm";
    const std::string layer = "encoder.layer.{l}.";
    s.stored = {{"embed", "embeddings.word_embeddings"},
                {"embed_positions", "embeddings.position_embeddings"},
                {"embeddings.layernorm", "embeddings.LayerNorm"},
                {"layers.{l}.query", layer + "attention.self.query"},
                {"layers.{l}.key", layer + "attention.self.key"},
                {"layers.{l}.value", layer + "attention.self.value"},
                {"layers.{l}.attention_output", layer + "attention.output.dense"},
                {"layers.{l}.attention_layernorm", layer + "attention.output.LayerNorm"},
                {"layers.{l}.fc1", layer + "intermediate.dense"},
                {"layers.{l}.fc2", layer + "output.dense"},
                {"layers.{l}.output_layernorm", layer + "output.LayerNorm"}};
    return s;
}

} // namespace

std::span<const SynthShape> synthShapes()
{
    static const std::vector<SynthShape> kShapes = {llamaLike("llama", "LlamaForCausalLM"), qwen3(), gemma(), gpt2(), opt(), phi3(), falcon(),
                                                    mixtral(), bert()};
    return kShapes;
}

} // namespace planish
