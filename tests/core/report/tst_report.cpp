// The page of a report: hostile names stay text, nothing points outside, numbers and charts say what the values say.
#include <QtTest>

#include <QRegularExpression>
#include <QXmlStreamReader>

#include "core/report/comparison_file.h"
#include "core/report/html_page.h"
#include "core/report/report.h"
#include "core/report/svg_chart.h"
#include "tests/support/plan_road.h"

using namespace planish;
using namespace planish::test;

namespace {

const std::string kHostile = "</script><script>alert(1)</script><img src=x onerror=\"y\" '&\x01\xff";

OutputBlock outputOf(double relative)
{
    OutputBlock block;
    block.relativeFrobenius = relative;
    return block;
}

/// A content with the hostile text in every place a file can name something.
ReportContent hostileContent()
{
    ReportContent c;
    c.title = c.created = c.version = c.backend = c.splitText = c.specsText = c.planFile = kHostile;
    c.files = {{kHostile, kHostile, {}, 1, kHostile}};
    Finding finding;
    finding.id = finding.kind = finding.sharing = finding.evidence = finding.rule.text = kHostile;
    finding.where = {{kHostile, kHostile}};
    ReportEdge edge;
    edge.edge = {kHostile};
    edge.site = edge.dtype = kHostile;
    edge.maxToMedian = 3;
    edge.findings = {finding};
    c.edges = {edge};
    c.notes = c.commands = {kHostile};
    Plan plan;
    Assignment a;
    a.edge = {kHostile};
    a.candidate.name = a.reason = a.status = kHostile;
    a.consumers = a.notes = a.placement.fusedInto = {kHostile};
    a.identity = outputOf(.2);
    a.alone = outputOf(.1);
    a.alone->perConsumer = {{kHostile, .1}, {kHostile, .2}};
    plan.assignments = {a};
    plan.notes = {kHostile};
    plan.basisIn = plan.toolVersion = plan.source.model = kHostile;
    plan.calibration.requests = {kHostile};
    plan.choices = {{{kHostile}, kHostile, {{.name = kHostile, .status = kHostile, .reason = kHostile}}}};
    c.ledger = ledgerOf(plan);
    c.plan = plan;
    c.check = CheckResult{false, {{kHostile, kHostile, kHostile, kHostile, Refusal::Severity::Error}}, {{kHostile, "failed"}}};
    c.verify = {{kHostile, kHostile, kHostile}};
    c.decisions = {{{kHostile},
                    kHostile,
                    kHostile,
                    {{.name = kHostile, .note = kHostile, .value = .1, .low = .05, .high = .2, .cost = 1},
                     {.name = "b", .note = kHostile, .value = .2, .cost = 5}},
                    {kHostile},
                    {kHostile}}};
    ReportProof proof{.edge = {kHostile}};
    proof.note = kHostile;
    proof.profileBefore = proof.profileAfter = proof.curveBefore = proof.curveAfter = {.1, .2, 1};
    proof.commands = {kHostile};
    c.proofs = {proof};
    c.data = {{"schema", "planish.report/1"}, {kHostile, kHostile}};
    return c;
}

QString elementText(const std::string &html, const char *begin, const char *end)
{
    const QString text = QString::fromStdString(html);
    const auto from = text.indexOf(QLatin1String(begin));
    return text.mid(from + QLatin1String(begin).size(),
                    text.indexOf(QLatin1String(end), from) - from - QLatin1String(begin).size());
}

} // namespace

class TestReport : public QObject {
    Q_OBJECT
private slots:
    void hostileNamesStayText()
    {
        const std::string html = reportHtml(hostileContent());
        const QString page = QString::fromStdString(html);
        QCOMPARE(page.count("<script"), 1); // the data block alone
        QCOMPARE(page.count("</script"), 1);
        QVERIFY(!page.contains("<img"));
        const QString shown = page.left(page.indexOf("<script"));
        QVERIFY(!shown.contains(QRegularExpression("[\\x{1}-\\x{8}\\x{fffd}]")));
        QVERIFY(page.count("&lt;img src=x onerror=&quot;y&quot; &#39;&amp;") >= 30);
    }

    void thePageIsWellFormed()
    {
        // Our writer closes everything, so an XML reader can judge nesting once the void parts of HTML are taken out.
        QString page = QString::fromStdString(reportHtml(hostileContent()));
        page.remove("<!DOCTYPE html>");
        page.replace(QRegularExpression("<meta [^>]*>"), "");
        QXmlStreamReader reader(page);
        while (!reader.atEnd())
            reader.readNext();
        QVERIFY2(!reader.hasError(), qPrintable(reader.errorString() + " at line " + QString::number(reader.lineNumber())));
    }

    void nothingPointsOutside()
    {
        const QString page = QString::fromStdString(reportHtml(hostileContent()));
        QVERIFY(page.contains("default-src 'none'"));
        const QRegularExpression reference("(?:src|href|url)\\s*[=(]\\s*[\"']?([^\"'>)\\s]+)");
        auto it = reference.globalMatch(
            QString(page)
                .remove("&lt;img src=x")
                .remove(QRegularExpression("<script.*</script>", QRegularExpression::DotMatchesEverythingOption)));
        while (it.hasNext()) {
            const QString target = it.next().captured(1);
            QVERIFY2(target.startsWith('#'), qPrintable(target));
        }
        QVERIFY(!page.contains("http://") || page.count("http://") == page.count("http://www.w3.org/2000/svg"));
    }

    void theDataBlockIsTheDataAgain()
    {
        const ReportContent content = hostileContent();
        const QString block = elementText(reportHtml(content), "id=\"planish-data\">", "</script>");
        const auto json = nlohmann::ordered_json::parse(block.toStdString());
        QCOMPARE(json["schema"].get<std::string>(), std::string("planish.report/1"));
        QCOMPARE(json.size(), content.data.size());
    }

    void everyNumberOfThePlanStandsInFull()
    {
        ReportContent content = hostileContent();
        Assignment &a = content.plan->assignments[0];
        a.alone->relativeFrobenius = 0.012345678901234567;
        a.identity->sqnrDb = 31.93808916092152;
        a.equivalence = Equivalence{};
        a.equivalence->relativeFrobenius = 6.481842760879417e-17;
        const std::string html = reportHtml(content);
        for (const char *number : {"0.012345678901234567", "31.93808916092152", "6.4818427608794172e-17"})
            QVERIFY2(html.find(number) != std::string::npos, number);
        QVERIFY(html.find("the function did not change") != std::string::npos);
        a.equivalence->relativeFrobenius = 1e-9;
        QVERIFY(reportHtml(content).find("above the gate") != std::string::npos);
    }

    void aReportWithoutPlanHasNoPlanSections()
    {
        ReportContent content = hostileContent();
        content.plan.reset();
        content.ledger.reset();
        content.check.reset();
        content.proofs.clear();
        const std::string html = reportHtml(content);
        for (const char *id : {"id=\"plan\"", "id=\"equivalence\"", "id=\"ledger\"", "id=\"legality\""})
            QVERIFY2(html.find(id) == std::string::npos, id);
        QVERIFY(html.find("id=\"findings\"") != std::string::npos);
    }

    void decimationNeverLosesASpike()
    {
        std::vector<double> values(11008, 1.0);
        values[7777] = 900;
        const auto maxima = decimatedMaxima(values, 280);
        QCOMPARE(maxima.size(), std::size_t(280));
        QCOMPARE(*std::max_element(maxima.begin(), maxima.end()), 900.0);
        QCOMPARE(decimatedMaxima({1, 2, 3}, 280), (std::vector<double>{1, 2, 3}));
    }

    void aLargeProfileStaysSmall()
    {
        const std::vector<double> wide(14336, 2.0);
        QVERIFY(profileChart(wide, wide).size() < 16000);
        QVERIFY(concentrationChart(wide, wide).size() < 20000); // 128 edges of all charts stay below 10 MB
    }

    void chartsSurviveOddNumbers()
    {
        for (const double odd : {0.0, -1.0, double(NAN), double(INFINITY)}) {
            const std::string svg = beforeAfterChart({{"a", odd, odd, odd, odd, odd}, {"b", 1.0, 2.0, {}, {}, {}}}, "error") +
                                    candidateChart({{.name = "a", .value = odd, .low = odd, .high = odd, .cost = odd}}, "error") +
                                    profileChart({odd, 1}, {odd, odd}) + heatMap({"0"}, {"x"}, {{0, 0, odd, "h"}}, "m");
            QVERIFY(svg.find("nan") == std::string::npos);
            QVERIFY(svg.find("inf") == std::string::npos);
        }
    }

    void shadesRunFromVioletToYellow()
    {
        QCOMPARE(viridis(0), std::string("#440154"));
        QCOMPARE(viridis(1), std::string("#fde725"));
        QCOMPARE(viridis(-3), viridis(0));
    }

    void aForeignComparisonIsRefused()
    {
        const QTemporaryDir folder;
        const std::string file = folder.filePath("c.json").toStdString();
        for (const char *text :
             {"", "{", "[1]", R"({"schema":"planish.sweep/1"})", R"({"schema":"planish.comparison/1","edges":3})",
              R"({"schema":"planish.comparison/1","edges":[{"edge":"a"}]})",
              R"({"schema":"planish.comparison/1","edges":[7]})"}) {
            writeText(file, text);
            const auto read = readComparisonFile(file);
            QVERIFY2(!read, text);
            QVERIFY(toText(read.error()).find("c.json") != std::string::npos);
        }
        writeText(
            file,
            R"({"schema":"planish.comparison/1","edges":[{"edge":"a","evaluations":[{"candidate":"none","status":"ok","output":{"relative_frobenius":0.5},
            "uncertainty":{"low":0.4,"high":null}}, {"candidate":"x","status":"refused","reason":"norm_offset"}, 5],"ranking":[{"name":"none","tie":0},{"name":"zz","tie":1e99}]}]})");
        const ComparisonFile good = orThrow(readComparisonFile(file));
        QCOMPARE(good.decisions.size(), std::size_t(1));
        QCOMPARE(*good.decisions[0].candidates[0].value, 0.5);
        QCOMPARE(good.decisions[0].candidates[0].tie, 0);
        QVERIFY(!good.decisions[0].candidates[0].high);
        QVERIFY(!good.decisions[0].candidates[1].usable);
    }
};

QTEST_GUILESS_MAIN(TestReport)
#include "tst_report.moc"
