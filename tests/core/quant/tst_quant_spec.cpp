#include <QtTest>

#include "core/quant/format_table.h"
#include "core/quant/quant_spec.h"

using namespace planish;

namespace {

std::string errorOf(const char *text, Role role)
{
    const auto spec = parseQuantSpec(text, role);
    return spec ? std::string() : toText(spec.error());
}

} // namespace

class TestQuantSpec : public QObject {
    Q_OBJECT

private slots:
    void canonicalTextDropsDefaults_data()
    {
        QTest::addColumn<QString>("given");
        QTest::addColumn<QString>("canonical");
        QTest::addColumn<int>("role");
        const auto row = [](const char *given, const char *canonical, Role role) {
            QTest::newRow(given) << QString(given) << QString(canonical) << static_cast<int>(role);
        };
        row("int4:group32:dialect=free", "int4:group32:dialect=free", Role::Weight);
        row("int4:row:asym", "int4:row:asym", Role::Weight);
        row("int4:token:clip=p0.99", "int4:token:clip=p0.99", Role::Activation);
        row("int8", "int8:token", Role::Activation);
        row("int8:sym:dynamic:clip=max:scale=f64", "int8:token", Role::Activation);
        row("int8:dialect=narrow", "int8:row", Role::Weight);
        row("int4:row:dialect=zero", "int4:row:asym", Role::Weight);
        row("int4:row:asym:dialect=zero", "int4:row:asym", Role::Weight);
        row("int4:group64:dialect=s-half", "int4:group64:dialect=half", Role::Weight);
        row("int4:group64:asym:dialect=a-raw", "int4:group64:dialect=raw", Role::Weight);
        row("int4:tensor:static:asym", "int4:tensor:asym:static", Role::Activation);
        row("int8:channel:static:clip=mse", "int8:channel:static:clip=mse", Role::Activation);
        row("int4:token:tail=short", "", Role::Activation);
        row("int4:group100:tail=pad:scale=f16", "int4:group100:scale=f16:tail=pad", Role::Weight);
        row("int4:row:dialect=compressed_tensors", "int4:row:dialect=compressed_tensors", Role::Weight);
        row("int4:row:dialect=compressed_tensors:asym", "int4:row:asym:dialect=compressed_tensors", Role::Weight);
        row("int8:dialect=bitsandbytes", "int8:token:dialect=bitsandbytes", Role::Activation);
        row("int4:group128:asym:dialect=llm_awq", "int4:group128:dialect=llm_awq", Role::Weight);
        row("int4:row:dialect=omniquant", "int4:row:dialect=omniquant", Role::Weight);
        row("fp8_e4m3:token:clip=.90", "fp8_e4m3:token:clip=0.9", Role::Activation);
        row("fp8_e4m3:tensor:static", "fp8_e4m3:tensor:static", Role::Activation);
        row("mxfp4:rule=floor", "mxfp4", Role::Weight);
        row("mxfp6_e2m3:rule=even_elem", "mxfp6_e2m3:rule=even_elem", Role::Weight);
        row("nvfp4:dynamic", "nvfp4", Role::Activation);
        row("nvfp4:static:dialect=four_over_six", "nvfp4:static:dialect=four_over_six", Role::Activation);
        row("none", "none", Role::Activation);
        row("int8:row", "int8:token", Role::Either);
    }

    void canonicalTextDropsDefaults()
    {
        QFETCH(QString, given);
        QFETCH(QString, canonical);
        QFETCH(int, role);
        const auto spec = parseQuantSpec(given.toStdString(), static_cast<Role>(role));
        if (canonical.isEmpty()) {
            QVERIFY(!spec); // tail without groups says nothing
            return;
        }
        QVERIFY2(spec.has_value(), spec ? "" : toText(spec.error()).c_str());
        const std::string printed = canonicalText(*spec, static_cast<Role>(role));
        QCOMPARE(QString::fromStdString(printed), canonical);
        const auto again = parseQuantSpec(printed, static_cast<Role>(role));
        QVERIFY(again && *again == *spec);
    }

    void everyFormatOptionAndSharingRoundTrips()
    {
        const std::vector<std::string> options = {"",
                                                  ":asym",
                                                  ":clip=mse",
                                                  ":clip=p0.999",
                                                  ":clip=0.85",
                                                  ":scale=bf16",
                                                  ":dialect=mixed",
                                                  ":dialect=offset",
                                                  ":dialect=signed",
                                                  ":asym:clip=0.5:scale=f32"};
        int parsed = 0;
        for (const FormatRow &row : formatTable())
            for (const Role role : {Role::Activation, Role::Weight})
                for (std::string sharing : {"", ":tensor", ":token", ":channel", ":row", ":group32", ":group7"})
                    for (const std::string &option : options) {
                        const auto spec = parseQuantSpec(row.key + sharing + option, role);
                        if (!spec)
                            continue;
                        ++parsed;
                        const std::string text = canonicalText(*spec, role);
                        const auto again = parseQuantSpec(text, role);
                        QVERIFY2(again && *again == *spec, text.c_str());
                        QCOMPARE(canonicalText(*again, role), text);
                    }
        // 7 integer formats: 6 activation and 5 weight sharings with 10 options; 5 float formats with the 5 options without asym
        // and dialect; 8 block-like formats bare in both roles.
        QCOMPARE(parsed, 7 * (6 + 5) * 10 + 5 * (6 + 5) * 5 + 8 * 2);
    }

    void contradictionsAreUsageErrorsThatNameTheWord_data()
    {
        QTest::addColumn<QString>("given");
        QTest::addColumn<int>("role");
        QTest::addColumn<QString>("says");
        const auto row = [](const char *given, Role role, const char *says) {
            QTest::newRow(given) << QString(given) << static_cast<int>(role) << QString(says);
        };
        row("int9:token", Role::Activation, "unknown format 'int9'");
        row("INT8", Role::Activation, "unknown format 'INT8'");
        row("int8:tokn", Role::Activation, "nearest is token");
        row("int8:row", Role::Activation, "sharing 'row' is not for activations");
        row("int8:token", Role::Weight, "sharing 'token' is not for weights");
        row("int8:channel", Role::Weight, "sharing 'channel' is not for weights");
        row("int4:group", Role::Weight, "has no size");
        row("int4:group1", Role::Weight, "has no size");
        row("int4:group-4", Role::Weight, "has no size");
        row("int4:group32x", Role::Weight, "has no size");
        row("int4:asym:row", Role::Weight, "right after the format");
        row("int4:row:tensor", Role::Weight, "right after the format");
        row("int4:row:sym:asym", Role::Weight, "contradict");
        row("int4:row:asym:asym", Role::Weight, "given twice");
        row("int4:row:clip=mse:clip=max", Role::Weight, "'clip' is given twice");
        row("int4:row:sym:dialect=raw", Role::Weight, "dialect raw implies asym");
        row("int4:row:asym:dialect=half", Role::Weight, "dialect half implies sym");
        row("int4:row:asym:dialect=bitsandbytes", Role::Weight, "implies sym");
        row("int4:row:dialect=hafl", Role::Weight, "nearest is half");
        row("int4:row:dialect=four_over_six", Role::Weight, "unknown dialect");
        row("int8:token:static", Role::Activation, "tensor:static or channel:static");
        row("int8:group32:static", Role::Activation, "tensor:static or channel:static");
        row("int8:tensor:static", Role::Weight, "weights take neither static nor dynamic");
        row("int8:tensor:static:dynamic", Role::Activation, "contradict");
        row("nvfp4:static", Role::Weight, "weights take neither static nor dynamic");
        row("fp8_e4m3:token:asym", Role::Activation, "fp8_e4m3 does not take 'asym'");
        row("fp4_e2m1:token:dialect=half", Role::Activation, "does not take 'dialect'");
        row("mxfp4:group32", Role::Weight, "mxfp4 takes no sharing");
        row("mxfp4:clip=mse", Role::Weight, "mxfp4 does not take 'clip'");
        row("mxfp4:rule=flor", Role::Weight, "nearest is floor");
        row("int8:rule=even", Role::Weight, "int8 does not take 'rule'");
        row("none:token", Role::Activation, "none takes no sharing");
        row("none:sym", Role::Activation, "none does not take 'sym'");
        row("int8:token:clip=0", Role::Activation, "clip '0'");
        row("int8:token:clip=1.5", Role::Activation, "clip '1.5'");
        row("int8:token:clip=p0", Role::Activation, "clip 'p0'");
        row("int8:token:clip=nan", Role::Activation, "clip 'nan'");
        row("int8:token:clip=0.9x", Role::Activation, "clip '0.9x'");
        row("int8:token:clip", Role::Activation, "'clip' is incomplete");
        row("int8:token:asym=1", Role::Activation, "'asym=1'");
        row("int8:token:scale=f8", Role::Activation, "unknown scale 'f8'");
        row("int4:group10:tail=cut", Role::Weight, "unknown tail 'cut'");
        row("int8 :token", Role::Activation, "blank");
        row("int8::asym", Role::Activation, "empty word");
        row("", Role::Activation, "empty word");
        row("int8:", Role::Activation, "empty word");
    }

    void contradictionsAreUsageErrorsThatNameTheWord()
    {
        QFETCH(QString, given);
        QFETCH(int, role);
        QFETCH(QString, says);
        const auto spec = parseQuantSpec(given.toStdString(), static_cast<Role>(role));
        QVERIFY(!spec);
        QCOMPARE(spec.error().code, ErrorCode::Usage);
        const std::string text = toText(spec.error());
        QVERIFY2(text.find(says.toStdString()) != std::string::npos, text.c_str());
    }

    void anErrorShowsTheValidListAndTheSpec()
    {
        const std::string text = errorOf("int8:token:dialect=narow", Role::Activation);
        QCOMPARE(QString::fromStdString(text),
                 QString("spec int8:token:dialect=narow: unknown dialect 'narow'; expected one of narrow, mixed, half, offset, "
                         "signed, zero, "
                         "raw, free, bitsandbytes, compressed_tensors, llm_awq, omniquant; nearest is narrow"));
    }

    void controlCharactersNeverReachTheMessage()
    {
        const std::string text = errorOf("int8:\x1b[31m", Role::Activation);
        QVERIFY(text.find('\x1b') == std::string::npos);
    }

    void storedBitsCountScalesAndZeroPoints_data()
    {
        QTest::addColumn<QString>("spec");
        QTest::addColumn<double>("bits");
        // diagonal.md 2.1 and formats.md 4, at N = K = 4096
        QTest::newRow("g128") << "int4:group128" << 4.125;
        QTest::newRow("g128 asym") << "int4:group128:asym" << 4.15625;
        QTest::newRow("g64") << "int4:group64" << 4.25;
        QTest::newRow("g64 asym") << "int4:group64:asym" << 4.3125;
        QTest::newRow("g32") << "int4:group32" << 4.5;
        QTest::newRow("g32 asym") << "int4:group32:asym" << 4.625;
        QTest::newRow("row") << "int8:row" << 8.0 + 16.0 / 4096;
        QTest::newRow("row f32") << "int8:row:scale=f32" << 8.0 + 32.0 / 4096;
        QTest::newRow("mxfp4") << "mxfp4" << 4.25;
        QTest::newRow("mxfp6") << "mxfp6_e3m2" << 6.25;
        QTest::newRow("mxint8") << "mxint8" << 8.25;
        QTest::newRow("nvfp4") << "nvfp4" << 4.5;
        QTest::newRow("none") << "none" << 16.0;
    }

    void storedBitsCountScalesAndZeroPoints()
    {
        QFETCH(QString, spec);
        QFETCH(double, bits);
        QCOMPARE(storedBits(*parseQuantSpec(spec.toStdString(), Role::Weight), 4096, 4096), bits);
    }

    void aShortTailHasItsOwnScale()
    {
        const auto spec = parseQuantSpec("int4:group128", Role::Weight);
        QCOMPARE(storedBits(*spec, 10, 576), 4.0 + 5.0 * 16.0 / 576.0); // 4.5 groups a row
    }

    void sharingIsCheckedAgainstTheWidth()
    {
        QVERIFY(checkSharing(*parseQuantSpec("int4:group128", Role::Weight), Role::Weight, 576, "e"));
        const auto large = checkSharing(*parseQuantSpec("int4:group600", Role::Weight), Role::Weight, 576, "e");
        QVERIFY(!large && large.error().code == ErrorCode::Usage);
        const auto reject = checkSharing(*parseQuantSpec("int4:group128:tail=reject", Role::Weight), Role::Weight, 576, "e");
        QVERIFY(!reject && reject.error().rule == "divisibility");
        QVERIFY(checkSharing(*parseQuantSpec("int4:group64:tail=reject", Role::Weight), Role::Weight, 576, "e"));
    }

    void everyEnumeratorHasItsRow()
    {
        QCOMPARE(formatTable().size(), static_cast<std::size_t>(NumberFormat::NvFp4) + 1);
        for (std::size_t i = 0; i < formatTable().size(); ++i) {
            const FormatRow &row = formatTable()[i];
            QCOMPARE(static_cast<std::size_t>(row.format), i);
            QCOMPARE(row.bits, bitsOf(row.format));
            QCOMPARE(row.block > 0, isBlockFormat(row.format));
            QCOMPARE(findFormat(row.key), &row);
        }
    }
};

QTEST_GUILESS_MAIN(TestQuantSpec)
#include "tst_quant_spec.moc"
