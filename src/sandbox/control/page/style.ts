/** The page's style: the system's own fonts, light or dark as the reader has it, from a phone to a wide screen. */
export const STYLE = `
:root { color-scheme: light dark;
  --page: light-dark(#f7f8fa, #0f1216); --card: light-dark(#fff, #181c23); --sunk: light-dark(#eceff3, #0b0d11);
  --line: light-dark(#dfe3e9, #2a303b); --text: light-dark(#171b22, #e8ebf0); --faint: light-dark(#5a6472, #98a2b3);
  --accent: light-dark(#3346c8, #9aa7ff); --accent-soft: light-dark(#e9ecfd, #22284a);
  --good: light-dark(#0b7540, #58d68d); --good-soft: light-dark(#e2f5ea, #12301f);
  --bad: light-dark(#b42318, #ff9086); --bad-soft: light-dark(#fdeceb, #3a1a18);
  --wait: light-dark(#8a5300, #f2b84b); --wait-soft: light-dark(#fdf2dc, #33260c); --radius: .6rem; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
html { overflow-y: scroll; background: var(--page); }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); }
h1, h2, p, ul, pre { margin: 0; } h1 { font-size: 1rem; font-weight: 650; } h2 { font-size: 1rem; font-weight: 650; }
code, pre, .mono { font-family: ui-monospace, SFMono-Regular, Menlo, monospace; font-size: .85em; }
.faint { color: var(--faint); } .label { color: var(--faint); font-size: .85rem; }
.skip { position: absolute; left: -99rem; z-index: 3; background: var(--card); padding: .5rem; } .skip:focus { left: .5rem; top: .5rem; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; } main:focus { outline: none; }

button, select, input[type=number] { font: inherit; font-size: .9rem; color: inherit; min-height: 2.1rem; padding: .2rem .7rem;
  border: 1px solid var(--line); border-radius: .45rem; background: var(--card); }
button { cursor: pointer; white-space: nowrap; } button:hover, select:hover { border-color: var(--accent); }
button.quiet { min-height: 0; border: 0; padding: 0; background: none; color: var(--accent); } button.quiet:hover { text-decoration: underline; }
button.danger { color: var(--bad); } button.danger:hover { border-color: var(--bad); } button.danger.sure { background: var(--bad); color: var(--card); }
input[type=number] { width: 6.5rem; } select { max-width: 13rem; }
kbd { font: inherit; font-size: .72rem; color: var(--faint); border: 1px solid var(--line); border-radius: .25rem; padding: 0 .28rem; margin-left: .15rem; }
body.no-keys kbd { display: none; }

header { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: .5rem 2rem; align-items: center; padding: .6rem max(1.5rem, calc(50vw - 53.5rem));
  background: var(--card); border-bottom: 1px solid var(--line); }
.brand { display: flex; align-items: center; gap: .7rem; margin-right: auto; }
.link { font-size: .8rem; color: var(--faint); display: inline-flex; align-items: center; gap: .35rem; min-width: 6.2rem; }
.link::before { content: ""; width: .5rem; height: .5rem; border-radius: 50%; background: var(--wait); }
.link.live::before { background: var(--good); } .link.gone::before { background: var(--bad); }
nav { display: none; gap: 1rem; font-size: .9rem; } nav a { color: var(--accent); text-underline-offset: .2em; padding: .4rem 0; }
.group, .group form, .time { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem; }
.clock { font-variant-numeric: tabular-nums; font-size: 1.05rem; font-weight: 600; min-width: 4.6rem; }
.tag { font-size: .75rem; color: var(--faint); border: 1px solid var(--line); border-radius: 1rem; padding: 0 .5rem; min-width: 3.4rem; text-align: center; }

.page { display: grid; grid-template-columns: minmax(0, 1fr) 19rem; gap: 1.5rem; max-width: 110rem; margin: 0 auto; padding: 1.25rem 1.5rem 4rem; align-items: start; }
main { display: grid; gap: 2rem; min-width: 0; }
aside { display: grid; gap: 1rem; position: sticky; top: 4.5rem; }
.box { background: var(--card); border: 1px solid var(--line); border-radius: var(--radius); padding: .9rem 1rem; display: grid; gap: .6rem; }
.head { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: .5rem 1rem; min-height: 2.3rem; margin-bottom: .6rem; }
.banner { background: var(--bad-soft); color: var(--bad); border-radius: var(--radius); padding: .6rem .9rem; }
.secret { display: grid; grid-template-columns: 1fr auto; gap: 0 .5rem; align-items: center; }
.secret .label { grid-column: 1 / -1; } .secret code { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; user-select: all; }
.secret button { min-height: 1.8rem; padding: 0 .55rem; font-size: .8rem; }
.figure { font-size: 1.6rem; font-weight: 650; line-height: 1.1; font-variant-numeric: tabular-nums; } .figure .faint { font-size: .9rem; font-weight: 400; }
.switch { display: flex; align-items: center; gap: .55rem; cursor: pointer; } .switch input { width: 1.05rem; height: 1.05rem; margin: 0; accent-color: var(--accent); }
.rule { display: flex; justify-content: space-between; align-items: center; gap: .5rem; min-height: 1.8rem; font-size: .9rem; line-height: 1.3; } .rule span { min-width: 0; overflow-wrap: anywhere; } .rule:has([hidden]) { color: var(--faint); }
.rule button { min-height: 1.8rem; padding: 0 .55rem; font-size: .8rem; }

.filters, .tabs { display: flex; flex-wrap: wrap; gap: .25rem; padding: .2rem; background: var(--sunk); border-radius: .6rem; }
.filters button, .tabs button { border: 0; background: none; min-height: 1.8rem; padding: 0 .7rem; color: var(--faint); border-radius: .45rem; }
.filters [aria-pressed=true], .tabs [aria-selected=true] { background: var(--card); color: var(--text); box-shadow: 0 1px 2px rgb(0 0 0 / .12); }
.count { font-variant-numeric: tabular-nums; opacity: .75; }
.empty { display: grid; gap: .7rem; justify-items: start; padding: 1.1rem 1.2rem; border: 1px dashed var(--line); border-radius: var(--radius); color: var(--faint); }
.empty pre { max-width: 100%; overflow-x: auto; padding: .7rem .8rem; background: var(--sunk); border-radius: .45rem; color: var(--text); }
#more { margin-top: .8rem; }

.jobs { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(17.5rem, 100%), 1fr)); padding: 0; list-style: none; }
.card { display: flex; flex-direction: column; min-width: 0; background: var(--card); border: 1px solid var(--line); border-radius: var(--radius); overflow: hidden; scroll-margin: 5rem; }
.card:target, .card.found { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.media { display: grid; place-items: center; aspect-ratio: 16 / 9; background: var(--sunk); color: var(--faint); font-size: .9rem; position: relative; overflow: hidden; }
.media img, .media video { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain; } .media audio { width: 90%; }
.text { display: flex; flex-direction: column; gap: .45rem; padding: .75rem .9rem .8rem; flex: 1; min-width: 0; }
.line { display: flex; align-items: center; justify-content: space-between; gap: .5rem; min-height: 1.5rem; }
.status { font-size: .8rem; font-weight: 600; padding: .05rem .55rem; border-radius: 1rem; color: var(--wait); background: var(--wait-soft); }
.status.completed { color: var(--good); background: var(--good-soft); }
.status.failed, .status.blocked, .status.canceled { color: var(--bad); background: var(--bad-soft); }
.prompt { overflow-wrap: anywhere; white-space: pre-line; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
.prompt.open { display: block; -webkit-line-clamp: none; max-height: 10.5rem; overflow-y: auto; }
.note { font-size: .88rem; border-radius: .4rem; padding: .35rem .55rem; overflow-wrap: anywhere; } .note.bad { color: var(--bad); background: var(--bad-soft); } .note.warn { color: var(--wait); background: var(--wait-soft); }
.meta { margin-top: auto; display: grid; gap: .1rem; font-size: .85rem; color: var(--faint); font-variant-numeric: tabular-nums; }
.meta .mono { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; user-select: all; }
.refused { color: var(--bad); }

.panel { background: var(--card); border: 1px solid var(--line); border-radius: var(--radius); overflow: auto; max-height: 28rem; min-height: 8rem; }
.panel .none { padding: .9rem 1rem; } .panel tbody:not(:empty) ~ *, .panel table:has(tbody:not(:empty)) + .none { display: none; } .panel table:has(tbody:empty) { display: none; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; } th, td { text-align: left; vertical-align: baseline; padding: .45rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { padding-left: 1rem; } th:last-child, td:last-child { padding-right: 1rem; } tbody tr:last-child td { border-bottom: 0; }
thead th { position: sticky; top: 0; background: var(--card); color: var(--faint); font-weight: 500; font-size: .82rem; z-index: 1; }
td { overflow-wrap: anywhere; } td.time, td.attempt, td.method { white-space: nowrap; font-variant-numeric: tabular-nums; }
.tokens, .balance { text-align: right; font-variant-numeric: tabular-nums; } td.send, td.repeat { white-space: nowrap; } td.send button, td.repeat button { margin-right: .8rem; }
td.job .quiet, td.job a { max-width: 22ch; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; display: inline-block; vertical-align: bottom; color: var(--accent); }

#say { position: fixed; left: 50%; bottom: 1.2rem; transform: translateX(-50%); max-width: min(40rem, 92vw); padding: .5rem .9rem; border-radius: .6rem; z-index: 3;
  background: light-dark(#171b22, #e8ebf0); color: light-dark(#fff, #12151b); box-shadow: 0 .3rem 1rem rgb(0 0 0 / .25); overflow-wrap: anywhere; }
#say:empty { visibility: hidden; padding: 0; }

@media (max-width: 68rem) { .page { grid-template-columns: minmax(0, 1fr); } aside { position: static; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); } }
@media (max-width: 46rem) {
  h2 { scroll-margin-top: 1rem; } header { position: static; padding: .7rem 1rem; gap: .7rem; } .brand { width: 100%; margin: 0; justify-content: space-between; } .link { min-width: 0; }
  .page { padding: 1rem 1rem 5rem; gap: 1.5rem; } nav { display: flex; order: 9; width: 100%; } .group, .time { width: 100%; } .group form { flex: 1 1 100%; } .group input[type=number], .group select { flex: 1; min-width: 0; max-width: none; }
  .group [data-advance] { flex: 1 1 40%; } kbd { display: none; } .head { align-items: start; } .tabs, .filters { width: 100%; } .tabs button, .filters button { flex: 1 1 40%; padding: 0 .3rem; } .tabs button { flex: 1; }
  button, select, input[type=number] { min-height: 2.6rem; } .tabs button, .filters button, .secret button, .rule button { min-height: 2.2rem; } button.quiet { min-height: 1.8rem; }
  .panel { max-height: none; } thead { position: absolute; clip-path: inset(50%); } table, tbody, tr, td { display: block; } tr { display: grid; grid-template-columns: 1fr auto; gap: .1rem .8rem; padding: .7rem 1rem; border-bottom: 1px solid var(--line); }
  tbody tr:last-child { border-bottom: 0; } td, td:first-child, td:last-child { border: 0; padding: 0; } td.time { order: 2; text-align: right; color: var(--faint); }
  .panel td { grid-column: 1 / -1; } .panel td.time { grid-column: 2; grid-row: 1; } .panel td.event, .panel td.method, .panel td.entry { grid-column: 1; grid-row: 1; font-weight: 600; }
  .panel td.tokens, .panel td.balance { text-align: left; } td.tokens::before { content: "Tokens "; color: var(--faint); } td.balance::before { content: "Balance "; color: var(--faint); } td.attempt::before { content: "Attempt "; color: var(--faint); }
}
@media (prefers-reduced-motion: no-preference) {
  .media.running::after { content: ""; position: absolute; inset: auto 0 0 0; height: 3px; background: linear-gradient(90deg, transparent, var(--accent), transparent); animation: run 1.6s linear infinite; }
  @keyframes run { from { transform: translateX(-100%); } to { transform: translateX(100%); } }
}
`;
