// The style sheet of a report: light and dark, print, charts by class. Colours: Okabe-Ito for series, which most eyes can tell
// apart.
#pragma once

#include <string_view>

namespace planish {

inline constexpr std::string_view kPageStyle = R"css(
:root{--bg:#fcfcfa;--panel:#fff;--ink:#1d232b;--soft:#5c6672;--line:#d9dde2;--grid:#e9ecef;--before:#9aa3ad;--after:#0072b2;--good:#00794f;--bad:#b3400a;--warn:#8a6200;--mark:#e69f00;--tint:#eef4f9}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--panel:#1b1f25;--ink:#e6e9ed;--soft:#9aa4b0;--line:#343b44;--grid:#2a3038;--before:#7c8793;--after:#56b4e9;--good:#35c48d;--bad:#f28b54;--warn:#e8c15a;--mark:#e69f00;--tint:#1f2a35}}
*{box-sizing:border-box}
html{scroll-behavior:smooth}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;display:grid;grid-template-columns:15rem minmax(0,1fr)}
nav{position:sticky;top:0;align-self:start;height:100vh;overflow:auto;padding:2rem 1rem;border-right:1px solid var(--line);font-size:13px}
nav ol{margin:0;padding-left:1.4rem}nav li{margin:.35rem 0}
a{color:var(--after);text-decoration:none}a:hover{text-decoration:underline}
main{padding:2rem 2.4rem 5rem;max-width:78rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .4rem}h2{font-size:1.3rem;margin:3rem 0 .6rem;padding-top:.6rem;border-top:2px solid var(--ink)}h3{font-size:1.05rem;margin:1.8rem 0 .4rem}
.claim{font-size:.7rem;font-weight:500;color:var(--soft);border:1px solid var(--line);border-radius:1em;padding:.1em .7em;vertical-align:middle}
.lead{color:var(--soft);max-width:62rem;margin:.2rem 0}
.cards{display:flex;flex-wrap:wrap;gap:.8rem;margin:1.2rem 0}
.card{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.7rem 1rem;min-width:9.5rem}
.card b{display:block;font-size:1.45rem;line-height:1.25}.card span{color:var(--soft);font-size:12.5px}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;margin:.5rem 0 1rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding:.2rem 0}
th,td{padding:.28rem .7rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th.n,td.n{text-align:right}td.n{white-space:nowrap}
th[scope=row]{font-weight:500;white-space:nowrap}
thead th{color:var(--soft);font-weight:600;border-bottom:1px solid var(--soft);white-space:nowrap}
tr.chosen{background:var(--tint)}tr.refused{color:var(--soft)}
.good{color:var(--good);font-weight:600}.bad{color:var(--bad);font-weight:600}.warn{color:var(--warn)}
.say{text-align:left;display:inline-block;max-width:34rem}
code,pre{font:12.5px/1.45 "JetBrains Mono","DejaVu Sans Mono",ui-monospace,monospace}
pre.cli{background:var(--panel);border:1px solid var(--line);border-left:3px solid var(--after);padding:.6rem .8rem;overflow-x:auto;margin:.5rem 0 1rem;white-space:pre-wrap;word-break:break-all}
.hash{font:12px/1.4 "DejaVu Sans Mono",ui-monospace,monospace;word-break:break-all}
details{background:var(--panel);border:1px solid var(--line);border-radius:8px;margin:.7rem 0;padding:.2rem 1rem}
details>summary{cursor:pointer;padding:.5rem 0;font-weight:600}
details>summary small{font-weight:400;color:var(--soft);margin-left:.6rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(27rem,1fr));gap:1rem;margin:.8rem 0}
figure{margin:0;min-width:0}figcaption{font-size:12.5px;color:var(--soft);margin-bottom:.2rem}
svg{display:block;width:100%;height:auto;font:11px system-ui,"DejaVu Sans",sans-serif}
svg text{fill:var(--ink)}svg .soft{fill:var(--soft)}
svg .grid{stroke:var(--grid);stroke-width:1}svg .axis{stroke:var(--soft);stroke-width:1}
svg .before{stroke:var(--before);fill:none;stroke-width:1.2}svg .after{stroke:var(--after);fill:none;stroke-width:1.4}
svg .dotb{fill:var(--panel);stroke:var(--before);stroke-width:1.6}svg .dota{fill:var(--after);stroke:var(--panel);stroke-width:1}
svg .dotm{fill:var(--mark);stroke:var(--panel);stroke-width:1}svg .doth{fill:none;stroke:var(--soft);stroke-width:1.2;stroke-dasharray:2 2}
svg .spread{stroke:var(--ink);stroke-width:1.2;opacity:.75}svg .link{stroke:var(--after);stroke-width:1;opacity:.45}svg .front{stroke:var(--mark);fill:none;stroke-width:1.3}
svg .band{fill:var(--tint)}
@media(max-width:60rem){body{display:block}nav{display:none}main{padding:1rem}}
@media print{nav{display:none}body{display:block}details{break-inside:avoid}}
)css";

} // namespace planish
