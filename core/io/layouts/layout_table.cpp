#include "core/io/layouts/layout_table.h"

#include <array>

#include "core/io/layouts/containers.h"
#include "core/io/layouts/generic.h"
#include "core/io/layouts/keras.h"
#include "core/io/layouts/native.h"
#include "core/io/layouts/requests.h"
#include "core/io/layouts/torch.h"
#include "core/io/layouts/transformerlens.h"

namespace planish {

std::span<const Layout> layoutTable()
{
    static const std::array<Layout, 33> table{{
        {"native", "the attribute format = \"planish-dump/1\" with groups /edges and /tokens", recogniseNative, readNative},
        {"anndata", "the root attribute encoding-type = anndata", recogniseAnndata, readAnndata},
        {"matlab73", "MATLAB_class attributes", recogniseMatlab, readMatlab},
        {"xarray", "_NCProperties of h5netcdf", recogniseXarray, readNetcdf},
        {"netcdf4", "_NCProperties of netCDF-4", recogniseNetcdf, readNetcdf},
        {"hickle", "HICKLE_VERSION", recogniseHickle, readTables},
        {"pandas_fixed", "a pandas frame", recognisePandas, readPandas},
        {"pytables", "PYTABLES_FORMAT_VERSION", recognisePytables, readTables},
        {"hf_tf_model", "a tf_model.h5", recogniseTfModel, readKerasLegacy},
        {"keras_legacy_full", "/model_weights with layer_names", recogniseKerasModel, readKerasLegacy},
        {"keras_legacy_weights", "the root attribute layer_names", recogniseKerasWeights, readKerasLegacy},
        {"keras3_weights", "layers/NAME/vars", recogniseKeras3, readKeras3},
        {"transformerlens", "hook names (blocks.0.hook_resid_pre)", recogniseTransformerLens, readTransformerLens},
        {"gpt2_conv1d", "GPT-2 weights (h.0.attn.c_attn.weight)", recogniseConv1d, readTorch},
        {"hf_modules", "module inputs as groups (layers/2/mlp/gate_proj/input)", recogniseModules, readTorch},
        {"state_dict_flat", "dotted keys of a state dict", recogniseStateFlat, readTorch},
        {"state_dict_nested", "a state dict as groups", recogniseStateNested, readTorch},
        {"requests_prefill_decode", "prefill and decode per request", recognisePhases, readPhases},
        {"offsets", "values with offsets", recogniseOffsets, readOffsets},
        {"one_vector_per_prompt", "one vector per prompt and layer", recognisePromptVectors, readNumbered},
        {"one_group_per_sample", "one group per sample", recogniseSampleGroups, readNumbered},
        {"one_dataset_per_sentence", "datasets 0, 1, 2 …", recogniseSentences, readNumbered},
        {"labelled_axes", "a list of texts that names the axes", recogniseLabelledAxes, readArrays},
        {"appended_columns", "[batch, tokens, K + 2]", recogniseAppendedColumns, readArrays},
        {"heads_4d", "[batch, position, head, head_dim]", recogniseHeads, readArrays},
        {"stacked_layers_first", "[layers, tokens, K]", recogniseLayersFirst, readArrays},
        {"stacked_layers_middle", "[tokens, layers, K]", recogniseLayersMiddle, readArrays},
        {"batch_seq_k", "[batch, tokens, K]", recogniseBatchSeq, readArrays},
        {"per_layer_2d_dotted", "dotted module names", recognisePerLayerDotted, readArrays},
        {"per_layer_2d", "one [tokens, K] per layer (layer_3)", recognisePerLayer, readArrays},
        {"transposed", "[K, tokens] beside a weight of width K", recogniseTransposed, readArrays},
        {"vlen_flat", "variable-length rows", recogniseVariableLength, readVariableLength},
        {"ambiguous", "arrays a --layout file can name", recogniseAmbiguous, readArrays},
    }};
    return table;
}

Expected<RecognisedLayout> recogniseLayout(const FileStructure &structure)
{
    RecognisedLayout best;
    std::string wanted;
    for (const Layout &layout : layoutTable()) {
        wanted += (wanted.empty() ? "" : ", or ") + std::string(layout.wanted);
        LayoutMatch match = layout.recognise(structure);
        if (match.confidence > best.match.confidence)
            best = {&layout, std::move(match)};
    }
    if (best.layout == nullptr)
        return dataError(structure.file,
                         "no known layout of activations among its " + std::to_string(structure.datasets.size()) + " datasets",
                         "looked for " + wanted);
    return best;
}

} // namespace planish
