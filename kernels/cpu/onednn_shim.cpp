#include "kernels/cpu/onednn_shim.h"

#include <map>
#include <mutex>

#include <Eigen/Core>

#ifdef PLANISH_HAVE_ONEDNN
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace planish::cpu {

namespace {

void multiplyByEigen(const float *a, const float *b, std::size_t rows, std::size_t outputs, std::size_t depth, float *c)
{
    using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const auto m = static_cast<Eigen::Index>(rows), n = static_cast<Eigen::Index>(outputs), k = static_cast<Eigen::Index>(depth);
    Eigen::Map<RowMajor>(c, m, n).noalias() =
        Eigen::Map<const RowMajor>(a, m, k) * Eigen::Map<const RowMajor>(b, n, k).transpose();
}

} // namespace

#ifdef PLANISH_HAVE_ONEDNN

namespace {

using dnnl::memory;

/// Debian's library brings gomp; with one thread asked for it runs inline and the pool never starts.
void useOneOmpThread()
{
    thread_local bool done = false;
    if (!done) {
        using SetThreads = void (*)(int);
        if (auto *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads")) {
            reinterpret_cast<SetThreads>(symbol)(1);
        }
        done = true;
    }
}

memory::dim dimOf(std::size_t n)
{
    return static_cast<memory::dim>(n);
}

dnnl::matmul::primitive_desc describe(const dnnl::engine &engine, std::size_t rows, std::size_t outputs, std::size_t depth,
                                      memory::data_type in, memory::data_type out)
{
    const memory::dim m = dimOf(rows), n = dimOf(outputs), k = dimOf(depth);
    const memory::desc a({m, k}, in, memory::dims{k, 1});
    const memory::desc b({k, n}, in, memory::dims{1, k}); // W is stored [outputs, K]
    const memory::desc c({m, n}, out, memory::dims{n, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user); // lets one primitive run on several threads
#if DNNL_VERSION_MAJOR >= 3
    return dnnl::matmul::primitive_desc(engine, a, b, c, attributes);
#else
    return dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), attributes, engine);
#endif
}

void execute(const dnnl::matmul &primitive, const dnnl::matmul::primitive_desc &pd, const dnnl::engine &engine, const void *a,
             const void *b, void *c, GemmScratch &scratch)
{
    constexpr std::size_t kAlignment = 64;
    const std::size_t needed = pd.scratchpad_desc().get_size() + kAlignment;
    if (scratch.size < needed) {
        scratch.bytes = std::make_unique<std::byte[]>(needed);
        scratch.size = needed;
    }
    auto address = reinterpret_cast<std::uintptr_t>(scratch.bytes.get());
    address = (address + kAlignment - 1) / kAlignment * kAlignment;
    dnnl::stream stream(engine);
    primitive.execute(stream, {{DNNL_ARG_SRC, memory(pd.src_desc(), engine, const_cast<void *>(a))},
                               {DNNL_ARG_WEIGHTS, memory(pd.weights_desc(), engine, const_cast<void *>(b))},
                               {DNNL_ARG_DST, memory(pd.dst_desc(), engine, c)},
                               {DNNL_ARG_SCRATCHPAD, memory(pd.scratchpad_desc(), engine, reinterpret_cast<void *>(address))}});
    stream.wait();
}

} // namespace

struct TileGemm::Primitives {
    struct Entry {
        dnnl::matmul::primitive_desc pd;
        dnnl::matmul primitive;
    };
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    std::mutex mutex;
    std::map<std::size_t, std::unique_ptr<Entry>> byOutputs;

    const Entry &entry(std::size_t outputs, std::size_t depth)
    {
        const std::lock_guard lock(mutex);
        auto &slot = byOutputs[outputs];
        if (!slot) {
            slot = std::make_unique<Entry>();
            slot->pd = describe(engine, kGemmTileRows, outputs, depth, memory::data_type::f32, memory::data_type::f32);
            slot->primitive = dnnl::matmul(slot->pd);
        }
        return *slot;
    }
};

TileGemm::TileGemm(std::size_t depth) : m_depth(depth)
{
    useOneOmpThread();
    try {
        m_primitives = std::make_unique<Primitives>();
        m_primitives->entry(kGemmTileOutputs, depth);
    } catch (const dnnl::error &) {
        m_primitives.reset(); // no such primitive on this CPU: Eigen does the tiles
    }
}

void TileGemm::multiply(const float *a, const float *b, std::size_t outputs, float *c, GemmScratch &scratch) const
{
    if (!m_primitives) {
        multiplyByEigen(a, b, kGemmTileRows, outputs, m_depth, c);
        return;
    }
    useOneOmpThread();
    const auto &entry = m_primitives->entry(outputs, m_depth);
    execute(entry.primitive, entry.pd, m_primitives->engine, a, b, c, scratch);
}

bool libraryIntegerProduct(const std::int8_t *a, const std::int8_t *b, std::size_t rows, std::size_t outputs, std::size_t depth,
                           std::int32_t *c)
{
    useOneOmpThread();
    try {
        const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
        const auto pd = describe(engine, rows, outputs, depth, memory::data_type::s8, memory::data_type::s32);
        GemmScratch scratch;
        execute(dnnl::matmul(pd), pd, engine, a, b, c, scratch);
    } catch (const dnnl::error &) {
        return false;
    }
    return true;
}

const char *gemmLibrary()
{
    static const std::string name = [] {
        const dnnl_version_t *version = dnnl_version();
        return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
               std::to_string(version->patch);
    }();
    return name.c_str();
}

#else

struct TileGemm::Primitives {};

TileGemm::TileGemm(std::size_t depth) : m_depth(depth) {}

void TileGemm::multiply(const float *a, const float *b, std::size_t outputs, float *c, GemmScratch &) const
{
    multiplyByEigen(a, b, kGemmTileRows, outputs, m_depth, c);
}

bool libraryIntegerProduct(const std::int8_t *, const std::int8_t *, std::size_t, std::size_t, std::size_t, std::int32_t *)
{
    return false;
}

const char *gemmLibrary()
{
    return "Eigen";
}

#endif

TileGemm::~TileGemm() = default;

} // namespace planish::cpu
