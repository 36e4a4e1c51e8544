// The page's frame and looks; its script is report_script.cc. Invariant: nothing is fetched, and no
// text of the model becomes markup: the script writes text nodes only.
#include "tools/report_page.h"

namespace ge {

extern const char kReportScript[];

namespace {

constexpr char kStyle[] = R"css(
:root { --bg:#f6f7f9; --card:#fff; --ink:#1c2330; --dim:#667085; --line:#e3e7ee; --accent:#2f6fed;
  --warn:#d9480f; --good:#2b8a3e; --soft:#eef3fe; }
@media (prefers-color-scheme: dark) {
  :root { --bg:#12161d; --card:#1a202a; --ink:#e6eaf2; --dim:#93a0b5; --line:#2b3442;
    --accent:#74a3ff; --warn:#ff922b; --good:#69db7c; --soft:#222c3d; } }
* { box-sizing:border-box; }
html { scroll-behavior:smooth; scroll-padding-top:58px; }
body { margin:0; background:var(--bg); color:var(--ink);
  font:14px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif; }
nav { position:sticky; top:0; z-index:5; display:flex; gap:4px; align-items:center; padding:8px 28px;
  background:var(--card); border-bottom:1px solid var(--line); }
nav b { font-size:16px; margin-right:8px; } nav span { color:var(--dim); margin-right:auto; }
nav a { color:var(--dim); text-decoration:none; padding:4px 10px; border-radius:6px; }
nav a:hover { background:var(--soft); color:var(--accent); }
main { max-width:1400px; margin:0 auto; padding:20px 28px 60px; }
section { background:var(--card); border:1px solid var(--line); border-radius:10px; padding:16px 20px;
  margin-bottom:18px; box-shadow:0 1px 2px rgba(16,24,40,.04); }
h2 { font-size:16px; margin:0 0 2px; } h3 { font-size:13px; margin:14px 0 4px; }
p.note { color:var(--dim); margin:0 0 12px; max-width:150ch; }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(165px,1fr)); gap:12px;
  margin-bottom:18px; }
.card { background:var(--card); border:1px solid var(--line); border-radius:10px; padding:12px 16px; }
.card div { color:var(--dim); font-size:12px; } .card b { font-size:21px; font-weight:650;
  letter-spacing:-.01em; } .card small { display:block; color:var(--dim); }
table { border-collapse:collapse; width:100%; font-variant-numeric:tabular-nums; }
th { text-align:left; color:var(--dim); font-weight:600; font-size:12px; cursor:pointer;
  position:sticky; top:0; background:var(--card); white-space:nowrap; }
th,td { padding:4px 10px 4px 0; border-bottom:1px solid var(--line); }
td.n,th.n { text-align:right; } td.mono { font-family:ui-monospace,Menlo,"DejaVu Sans Mono",monospace;
  font-size:12px; color:var(--dim); }
td.name { max-width:340px; overflow:hidden; text-overflow:ellipsis; white-space:nowrap; }
tr:hover td { background:var(--soft); } tr.hit td { background:var(--soft); }
.scroll { max-height:460px; overflow:auto; } .bar { height:8px; border-radius:4px; min-width:1px; }
.dot { display:inline-block; width:10px; height:10px; border-radius:3px; margin-right:6px; }
.legend { display:flex; flex-wrap:wrap; gap:4px 16px; font-size:12px; color:var(--dim);
  margin:8px 0 0; }
input[type=search] { width:260px; padding:5px 10px; border:1px solid var(--line); border-radius:6px;
  background:var(--bg); color:var(--ink); margin-bottom:8px; }
canvas { width:100%; display:block; border-radius:6px; background:var(--bg); }
svg.graph { width:100%; height:620px; background:var(--bg); border-radius:6px; cursor:grab; }
svg text { fill:var(--ink); font-size:11px; } svg .dim { fill:var(--dim); }
.two { display:grid; grid-template-columns:minmax(0,1fr) 300px; gap:16px; }
.halves { display:grid; grid-template-columns:repeat(auto-fit,minmax(420px,1fr)); gap:0 28px; }
@media (max-width:900px) { .two { grid-template-columns:1fr; } nav a { display:none; } }
.detail { font-size:13px; overflow-wrap:anywhere; } .detail dt { color:var(--dim); font-size:12px; }
.detail dd { margin:0 0 8px; }
#tip { position:fixed; pointer-events:none; z-index:9; background:#1c2330; color:#fff; padding:6px 10px;
  border-radius:6px; font-size:12px; max-width:460px; display:none; white-space:pre-line;
  overflow-wrap:anywhere; }
details { border-bottom:1px solid var(--line); padding:4px 0; } summary { cursor:pointer; }
details li { font-family:ui-monospace,"DejaVu Sans Mono",monospace; font-size:12px; color:var(--dim); }
)css";

void AppendEscaped(std::string_view text, std::string& out) {
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += c;
    }
  }
}

}  // namespace

std::string ReportPage(std::string_view title, std::string_view json) {
  std::string page = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>";
  AppendEscaped(title, page);
  page += "</title><meta name=\"viewport\" content=\"width=device-width\"><style>";
  page += kStyle;
  page +=
      "</style></head>\n<body data-errors=\"0\"><nav></nav><main></main><div id=\"tip\"></div>\n"
      "<script type=\"application/json\" id=\"data\">";
  for (const char c : json) {
    if (c == '<')
      page += "\\u003c";
    else
      page += c;
  }
  page += "</script>\n<script>";
  page += kReportScript;
  page += "</script></body></html>\n";
  return page;
}

}  // namespace ge
