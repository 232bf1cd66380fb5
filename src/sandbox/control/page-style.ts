/** Style of the sandbox's page, for both color schemes and screens from 390 px. */
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
[hidden] { display: none !important; }
body { background: var(--bg); color: var(--text); padding: 1.25rem 1rem 4rem; max-width: 80rem; margin: 0 auto; }
h1 { font-size: 1.25rem; letter-spacing: -.02em; }
h1 span { color: var(--brand); }
h2 { font-size: .85rem; font-weight: 600; margin-bottom: .6rem; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; justify-content: space-between; margin-bottom: 1rem; }
header time { color: var(--soft); font-size: .85rem; font-variant-numeric: tabular-nums; }
button, select { font: inherit; font-size: .82rem; min-height: 2.1rem; padding: .2rem .6rem; border-radius: .5rem; border: 1px solid var(--line); background: var(--card); color: inherit; white-space: nowrap; }
button { cursor: pointer; font-weight: 500; }
button:hover { background: var(--tint); }
:is(button, select, ul):focus-visible { outline: 2px solid var(--brand); outline-offset: 2px; }
select { flex: 1; min-width: 0; text-overflow: ellipsis; }
label { display: block; color: var(--soft); font-size: .8rem; margin-bottom: .25rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .9rem; padding: 1rem; min-width: 0; }
#offline { background: var(--bad); color: var(--bg); border-radius: .6rem; padding: .6rem 1rem; margin-bottom: 1rem; }
.panels { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 1rem; margin-bottom: 1rem; }
.panels section { display: flex; flex-direction: column; }
.columns { display: grid; grid-template-columns: minmax(0, 1.6fr) minmax(0, 1fr); gap: 1rem; align-items: start; }
.side { display: grid; gap: 1rem; min-width: 0; }
.row { display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; margin-bottom: .6rem; }
.row h2 { margin: 0 auto 0 0; }
.soft, .none { color: var(--soft); font-size: .82rem; }
.figure { font-size: 1.9rem; font-weight: 650; letter-spacing: -.02em; line-height: 1.2; font-variant-numeric: tabular-nums; }
#plot { display: block; width: 100%; flex: 1; min-height: 5rem; height: 5rem; margin-top: .6rem; border-bottom: 1px solid var(--line); }
#plot path { fill: color-mix(in srgb, var(--brand) 14%, transparent); stroke: var(--brand); stroke-width: 2; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
#range { font-size: .75rem; margin-top: .3rem; }
#limits li { display: grid; grid-template-columns: 1fr auto; gap: .1rem .5rem; font-size: .82rem; margin-bottom: .5rem; }
progress { grid-column: 1 / -1; width: 100%; height: .35rem; appearance: none; border: 0; border-radius: 1rem; background: var(--tint); overflow: hidden; }
progress::-webkit-progress-bar { background: var(--tint); }
progress::-webkit-progress-value { background: var(--brand); }
progress::-moz-progress-bar { background: var(--brand); }
ul { list-style: none; padding: 0; }
#jobs { max-height: 52rem; overflow-y: auto; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr)); gap: .75rem; }
#jobs li { border: 1px solid var(--line); border-radius: .7rem; overflow: hidden; display: flex; flex-direction: column; gap: .35rem; padding-bottom: .6rem; font-size: .85rem; }
#jobs li > :not(.media) { margin-inline: .75rem; }
.media { display: grid; place-items: center; aspect-ratio: 16 / 9; margin-bottom: .25rem; background: var(--tint); color: var(--soft); }
.media :is(img, video) { width: 100%; height: 100%; object-fit: contain; min-height: 0; }
@media (prefers-reduced-motion: no-preference) { .busy { animation: busy 1.6s ease-in-out infinite alternate; } }
@keyframes busy { to { color: var(--brand); } }
.prompt { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; overflow-wrap: anywhere; font-weight: 500; }
.facts { display: flex; flex-wrap: wrap; gap: .2rem .6rem; align-items: center; color: var(--soft); font-size: .8rem; }
.last { display: flex; gap: .5rem; align-items: center; justify-content: space-between; min-height: 1.8rem; margin-top: auto; }
.last button, #faults button { min-height: 1.8rem; padding: .1rem .6rem; }
.problem { color: var(--bad); overflow-wrap: anywhere; font-size: .82rem; }
code { font: .76rem ui-monospace, monospace; color: var(--soft); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
.badge { border-radius: 1rem; padding: 0 .55rem; background: color-mix(in srgb, currentColor 12%, transparent); font-size: .76rem; font-weight: 600; color: var(--wait); white-space: nowrap; }
.badge.good { color: var(--ok); }
.badge.bad { color: var(--bad); }
.log { max-height: 26rem; overflow-y: auto; }
.log li { display: grid; grid-template-columns: auto minmax(0, 1fr) auto; gap: 0 .6rem; align-items: baseline; padding: .35rem 0; border-top: 1px solid var(--line); font-size: .82rem; }
.log li:first-child { border-top: 0; }
.log time { color: var(--soft); font-variant-numeric: tabular-nums; }
.log .what { color: inherit; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.log .more { grid-column: 2 / -1; }
#faults { display: flex; flex-wrap: wrap; gap: .3rem; }
@media (max-width: 64rem) { .columns { grid-template-columns: minmax(0, 1fr); } .panels { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
@media (max-width: 44rem) { #jobs { max-height: 36rem; } .log { max-height: 18rem; } .panels { grid-template-columns: minmax(0, 1fr); } }`;
