// Reads tests/golden/kernels/formats.{json,bin}: independent numbers of formats and quantizers, and the grid each case names.
#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "kernels/float_codes.h"
#include "kernels/matrix_view.h"
#include "kernels/number_grid.h"

namespace planish::test {

class KernelGoldens {
public:
    KernelGoldens()
    {
        const std::string folder = std::string(PLANISH_GOLDEN_DIR) + "/kernels/";
        std::ifstream(folder + "formats.json") >> m_index;
        std::ifstream file(folder + "formats.bin", std::ios::binary);
        m_bytes.assign(std::istreambuf_iterator<char>(file), {});
    }
    const nlohmann::json &operator[](const char *section) const { return m_index.at(section); }

    /// A blob widened to double; vectors are one row.
    MatrixD matrix(const std::string &name) const
    {
        const auto &entry = m_index.at("blobs").at(name);
        const auto &shape = entry.at("shape");
        MatrixD out(shape.size() == 1 ? 1 : shape[0].get<std::size_t>(), shape.back().get<std::size_t>());
        const char *data = m_bytes.data() + entry.at("offset").get<std::size_t>();
        const std::string type = entry.at("type");
        for (std::size_t i = 0; i < out.size(); ++i) {
            out.data()[i] = valueAt(type, data, i);
        }
        return out;
    }

private:
    template <class T> static double read(const char *data, std::size_t i)
    {
        T value;
        std::memcpy(&value, data + i * sizeof value, sizeof value);
        return static_cast<double>(value);
    }
    static double valueAt(const std::string &type, const char *data, std::size_t i)
    {
        if (type == "f64") {
            return read<double>(data, i);
        }
        if (type == "f32") {
            return read<float>(data, i);
        }
        if (type == "f16") {
            return halfToFloat(static_cast<std::uint16_t>(read<std::uint16_t>(data, i)));
        }
        if (type == "i16") {
            return read<std::int16_t>(data, i);
        }
        return type == "u8" ? read<std::uint8_t>(data, i) : read<std::int8_t>(data, i);
    }

    nlohmann::json m_index;
    std::vector<char> m_bytes;
};

inline NumberFormat formatNamed(const std::string &name)
{
    static const std::map<std::string, NumberFormat> kFormats = {{"int2", NumberFormat::Int2},
                                                                 {"int3", NumberFormat::Int3},
                                                                 {"int4", NumberFormat::Int4},
                                                                 {"int5", NumberFormat::Int5},
                                                                 {"int6", NumberFormat::Int6},
                                                                 {"int7", NumberFormat::Int7},
                                                                 {"int8", NumberFormat::Int8},
                                                                 {"fp8_e4m3", NumberFormat::Fp8E4M3},
                                                                 {"fp8_e5m2", NumberFormat::Fp8E5M2},
                                                                 {"fp6_e2m3", NumberFormat::Fp6E2M3},
                                                                 {"fp6_e3m2", NumberFormat::Fp6E3M2},
                                                                 {"fp4_e2m1", NumberFormat::Fp4E2M1},
                                                                 {"mxfp4", NumberFormat::MxFp4},
                                                                 {"mxfp6_e2m3", NumberFormat::MxFp6E2M3},
                                                                 {"mxfp6_e3m2", NumberFormat::MxFp6E3M2},
                                                                 {"mxfp8_e4m3", NumberFormat::MxFp8E4M3},
                                                                 {"mxfp8_e5m2", NumberFormat::MxFp8E5M2},
                                                                 {"mxint8", NumberFormat::MxInt8},
                                                                 {"nvfp4", NumberFormat::NvFp4}};
    return kFormats.at(name);
}

inline MxRule ruleNamed(const std::string &name)
{
    static const std::map<std::string, MxRule> kRules = {{"floor", MxRule::Floor},
                                                         {"even", MxRule::Even},
                                                         {"even_elem", MxRule::EvenElem},
                                                         {"ceil", MxRule::Ceil},
                                                         {"fourthirds", MxRule::FourThirds}};
    return kRules.at(name);
}

/// The grid of a golden case (format, sharing, group, dialect, clip, scale, rule, tool).
inline NumberGrid gridOf(const nlohmann::json &entry)
{
    static const std::map<std::string, Dialect> kDialects = {
        {"narrow", Dialect::Narrow}, {"mixed", Dialect::Mixed}, {"half", Dialect::Half}, {"offset", Dialect::Offset},
        {"signed", Dialect::Signed}, {"zero", Dialect::Zero},   {"raw", Dialect::Raw},   {"free", Dialect::Free}};
    static const std::map<std::string, Sharing> kSharings = {
        {"row", Sharing::Row}, {"tensor", Sharing::Tensor}, {"channel", Sharing::Channel}, {"group", Sharing::Group}};
    static const std::map<std::string, StepType> kSteps = {
        {"f32", StepType::F32}, {"f16", StepType::F16}, {"bf16", StepType::Bf16}};
    NumberGrid grid;
    grid.format = formatNamed(entry.at("format"));
    grid.sharing = kSharings.at(entry.value("sharing", std::string("row")));
    grid.group = entry.value("group", std::size_t(0));
    grid.dialect = kDialects.at(entry.value("dialect", std::string("narrow")));
    grid.mxRule = ruleNamed(entry.value("rule", std::string("floor")));
    grid.fourOverSix = entry.value("four_over_six", false);
    grid.timing = entry.value("static", false) ? Timing::Static : Timing::Dynamic;
    if (entry.contains("scale")) {
        grid.stepType = kSteps.at(entry.at("scale"));
    }
    const std::string clip = entry.value("clip", std::string("max")), tool = entry.value("tool", std::string());
    if (clip == "mse") {
        grid.clip = {ClipKind::Mse, 1.0};
    } else if (clip.front() == 'p') {
        grid.clip = {ClipKind::Percentile, std::stod(clip.substr(1))};
    } else if (clip != "max") {
        grid.clip = {ClipKind::Fixed, std::stod(clip)};
    }
    grid.tool = tool == "bitsandbytes"         ? ToolDialect::BitsAndBytes
                : tool == "compressed_tensors" ? ToolDialect::CompressedTensors
                                               : ToolDialect::None;
    return grid;
}

} // namespace planish::test
