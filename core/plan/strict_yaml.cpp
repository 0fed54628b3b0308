#include "core/plan/strict_yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/parser.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>

#include <algorithm>
#include <array>
#include <istream>
#include <memory>
#include <streambuf>

namespace planish {

namespace {

// Limits of a manifest: 128 edges with all their choices stay below 2 MB.
constexpr std::size_t kMaxBytes = 64u << 20;
constexpr std::size_t kMaxNodes = 4'000'000;
constexpr std::size_t kMaxDepth = 32;

struct Refused {
    Error error;
};

/// A frame of the tree under construction: in a map a pending key waits for its value.
struct Frame {
    YamlNode node;
    std::string key;
    bool hasKey = false;
};

class TreeBuilder final : public YAML::EventHandler {
public:
    explicit TreeBuilder(const std::string &file) : m_file(file) {}
    YamlNode take() { return std::move(m_root); }

    void OnDocumentStart(const YAML::Mark &) override {}
    void OnDocumentEnd() override {}
    void OnAlias(const YAML::Mark &mark, YAML::anchor_t) override { refuse(mark, "an alias stands here"); }
    void OnAnchor(const YAML::Mark &mark, const std::string &name) override { refuse(mark, "an anchor &" + name + " stands here"); }
    void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override { scalar(mark, anchor, YamlNode::Kind::Null, "", false); }
    void OnScalar(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor, const std::string &value) override
    {
        if (tag != "?" && tag != "!" && !tag.empty())
            refuse(mark, "a tag " + tag + " stands here");
        scalar(mark, anchor, YamlNode::Kind::Scalar, value, tag == "!");
    }
    void OnSequenceStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor, YAML::EmitterStyle::value) override
    {
        open(mark, anchor, YamlNode::Kind::Sequence);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor, YAML::EmitterStyle::value) override
    {
        open(mark, anchor, YamlNode::Kind::Map);
    }
    void OnMapEnd() override { close(); }

private:
    [[noreturn]] void refuse(const YAML::Mark &mark, const std::string &what) const
    {
        throw Refused{{ErrorCode::Data, m_file, what + " (line " + std::to_string(mark.line + 1) + place() + ")",
                       "expected plain YAML without anchors, aliases, tags or duplicate keys", {}}};
    }
    std::string place() const
    {
        std::string path;
        for (const Frame &frame : m_frames) {
            if (frame.node.isSequence())
                path += "[" + std::to_string(frame.node.items.size()) + "]";
            else if (frame.hasKey)
                path += (path.empty() ? "" : ".") + frame.key;
        }
        return path.empty() ? "" : ", " + path;
    }
    void count(const YAML::Mark &mark, YAML::anchor_t anchor)
    {
        if (anchor)
            refuse(mark, "an anchor stands here");
        if (++m_nodes > kMaxNodes)
            refuse(mark, "the document is too large");
        if (m_frames.size() > kMaxDepth)
            refuse(mark, "the document is nested deeper than " + std::to_string(kMaxDepth));
    }
    void scalar(const YAML::Mark &mark, YAML::anchor_t anchor, YamlNode::Kind kind, const std::string &value, bool quoted)
    {
        count(mark, anchor);
        if (!m_frames.empty() && m_frames.back().node.isMap() && !m_frames.back().hasKey) {
            Frame &map = m_frames.back();
            if (kind == YamlNode::Kind::Null)
                refuse(mark, "an empty key stands here");
            if (std::find(map.node.keys.begin(), map.node.keys.end(), value) != map.node.keys.end())
                refuse(mark, "duplicate key " + value);
            map.key = value;
            map.hasKey = true;
            return;
        }
        YamlNode node;
        node.kind = kind;
        node.text = value;
        node.quoted = quoted;
        node.line = mark.line + 1;
        attach(std::move(node));
    }
    void open(const YAML::Mark &mark, YAML::anchor_t anchor, YamlNode::Kind kind)
    {
        count(mark, anchor);
        if (!m_frames.empty() && m_frames.back().node.isMap() && !m_frames.back().hasKey)
            refuse(mark, "a key that is no scalar stands here");
        Frame frame;
        frame.node.kind = kind;
        frame.node.line = mark.line + 1;
        m_frames.push_back(std::move(frame));
    }
    void close()
    {
        YamlNode node = std::move(m_frames.back().node);
        m_frames.pop_back();
        attach(std::move(node));
    }
    void attach(YamlNode node)
    {
        if (m_frames.empty()) {
            m_root = std::move(node);
            return;
        }
        Frame &parent = m_frames.back();
        if (parent.node.isMap()) {
            parent.node.keys.push_back(std::move(parent.key));
            parent.hasKey = false;
        }
        parent.node.items.push_back(std::move(node));
    }

    std::string m_file;
    std::vector<Frame> m_frames;
    YamlNode m_root;
    std::size_t m_nodes = 0;
};

/// Borrowed text as a stream, so that a large manifest is not copied.
struct TextBuffer : std::streambuf {
    explicit TextBuffer(std::string_view text)
    {
        char *begin = const_cast<char *>(text.data());
        setg(begin, begin, begin + text.size());
    }
};

} // namespace

const YamlNode *YamlNode::find(std::string_view key) const
{
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i] == key)
            return &items[i];
    }
    return nullptr;
}

Expected<YamlNode> parseStrictYaml(const std::string &file, std::string_view text)
{
    if (text.size() > kMaxBytes)
        return dataError(file, "is too large for a manifest", "expected at most 64 MiB");
    if (text.find('\0') != std::string_view::npos)
        return dataError(file, "holds a zero byte", "expected YAML text");
    TextBuffer buffer(text);
    std::istream stream(&buffer);
    TreeBuilder builder(file);
    try {
        YAML::Parser parser(stream);
        if (!parser.HandleNextDocument(builder))
            return dataError(file, "is empty", "expected a manifest with schema: planish-plan/1");
        YamlNode root = builder.take();
        TreeBuilder second(file);
        if (parser.HandleNextDocument(second))
            return dataError(file, "holds a second document", "expected one YAML document");
        return root;
    } catch (const Refused &refused) {
        return tl::make_unexpected(refused.error);
    } catch (const YAML::Exception &exception) {
        return dataError(file, "is no YAML: line " + std::to_string(exception.mark.line + 1) + ": " + exception.msg,
                         "expected a manifest with schema: planish-plan/1");
    } catch (const std::exception &exception) {
        return dataError(file, std::string("cannot be parsed: ") + exception.what(), "expected YAML text");
    }
}

} // namespace planish
