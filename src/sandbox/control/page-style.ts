/** The style of the sandbox's page. It follows the system's color scheme and fits a screen of 390 px. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --bg: #fbfaf8; --card: #fff; --line: #e5e1db; --text: #211d1a; --soft: #6d655d; --tint: #f3efe9;
  --brand: #c8431c; --ok: #1a7f4b; --bad: #b3261e; --wait: #8a5a00;
  font: 15px/1.5 system-ui, sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root { --bg: #161412; --card: #201d1a; --line: #38332e; --text: #f1ece6; --soft: #a89f95; --tint: #2b2723;
    --brand: #ff8f6b; --ok: #5fce93; --bad: #ff8a80; --wait: #f0b94a; }
}
* { box-sizing: border-box; margin: 0; }
body { background: var(--bg); color: var(--text); padding: 1.25rem 1rem 4rem; max-width: 80rem; margin: 0 auto; }
h1 { font-size: 1.5rem; letter-spacing: -.02em; width: fit-content; background: linear-gradient(110deg, #e4572e, #f0a202); background-clip: text; color: transparent; }
h2 { font-size: .85rem; font-weight: 600; margin-bottom: .6rem; }
header { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; margin-bottom: 1rem; }
header time { margin-left: auto; color: var(--soft); font-variant-numeric: tabular-nums; }
button, select { font: inherit; font-size: .85rem; min-height: 2.25rem; padding: .3rem .8rem; border-radius: .55rem; border: 1px solid var(--line); background: var(--card); color: inherit; }
button { cursor: pointer; font-weight: 500; }
button:hover { background: var(--tint); }
:is(button, select, summary, a):focus-visible { outline: 2px solid var(--brand); outline-offset: 2px; }
select { flex: 1; min-width: 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .9rem; padding: 1rem; min-width: 0; }
#offline { background: var(--bad); color: var(--bg); border-radius: .6rem; padding: .6rem 1rem; margin-bottom: 1rem; }
.panels { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 1rem; margin-bottom: 1rem; }
.columns { display: grid; grid-template-columns: minmax(0, 1.5fr) minmax(0, 1fr); gap: 1rem; align-items: start; }
.side { display: grid; gap: 1rem; min-width: 0; }
.row { display: flex; gap: .5rem; align-items: center; margin-bottom: .5rem; }
.row:last-child { margin-bottom: 0; }
.soft, .none { color: var(--soft); font-size: .85rem; }
.figure { font-size: 1.7rem; font-weight: 650; letter-spacing: -.02em; line-height: 1.2; font-variant-numeric: tabular-nums; }
#plot { display: block; width: 100%; height: 6.5rem; margin-top: .5rem; }
#plot .balance { fill: none; stroke: var(--brand); stroke-width: 2; vector-effect: non-scaling-stroke; }
#plot .charged { fill: none; stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 4 3; vector-effect: non-scaling-stroke; }
#limits li { display: grid; grid-template-columns: 1fr auto; gap: 0 .5rem; font-size: .82rem; margin-bottom: .35rem; }
progress { grid-column: 1 / -1; width: 100%; height: .35rem; appearance: none; border: 0; border-radius: 1rem; background: var(--tint); overflow: hidden; }
progress::-webkit-progress-bar { background: var(--tint); }
progress::-webkit-progress-value { background: var(--brand); }
progress::-moz-progress-bar { background: var(--brand); }
ul { list-style: none; padding: 0; }
#jobs { max-height: 46rem; overflow-y: auto; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr)); gap: .75rem; }
#jobs li { border: 1px solid var(--line); border-radius: .7rem; overflow: hidden; display: grid; align-content: start; gap: .3rem; padding-bottom: .6rem; font-size: .85rem; }
#jobs li > :not(.media) { margin-inline: .7rem; }
.media { display: grid; place-items: center; aspect-ratio: 16 / 9; background: var(--tint); color: var(--soft); }
.media.empty { aspect-ratio: auto; height: 2.5rem; font-size: .8rem; }
.media :is(img, video) { width: 100%; height: 100%; object-fit: contain; min-height: 0; }
.prompt { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; overflow-wrap: anywhere; font-weight: 500; }
.facts { display: flex; flex-wrap: wrap; gap: .2rem .6rem; align-items: center; color: var(--soft); }
.last { display: flex; gap: .5rem; align-items: center; justify-content: space-between; min-height: 1.9rem; }
.last button { min-height: 1.8rem; padding: .1rem .6rem; white-space: nowrap; }
.problem { color: var(--bad); overflow-wrap: anywhere; }
code { font: .78rem ui-monospace, monospace; color: var(--soft); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
.badge { border-radius: 1rem; padding: 0 .55rem; background: var(--tint); font-size: .78rem; font-weight: 600; color: var(--wait); white-space: nowrap; }
.badge.good { color: var(--ok); }
.badge.bad { color: var(--bad); }
.log { max-height: 26rem; overflow-y: auto; }
.log li { display: grid; grid-template-columns: auto minmax(0, 1fr) auto; gap: 0 .6rem; align-items: baseline; padding: .3rem 0; border-top: 1px solid var(--line); font-size: .82rem; }
.log li:first-child { border-top: 0; }
.log time { color: var(--soft); font-variant-numeric: tabular-nums; }
.log .what { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.log .more { grid-column: 2 / -1; }
#faults { display: flex; flex-wrap: wrap; gap: .3rem; }
#faults button { min-height: 1.8rem; padding: .1rem .6rem; }
@media (max-width: 60rem) { .columns { grid-template-columns: minmax(0, 1fr); } .panels { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
@media (max-width: 40rem) { #jobs { max-height: 32rem; } .log { max-height: 18rem; } .panels { grid-template-columns: minmax(0, 1fr); } header time { margin-left: 0; width: 100%; order: 9; } }`;
