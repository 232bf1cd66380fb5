/** The page's style: the system's own fonts and colours, light or dark as the reader has it. */
export const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d5d9e0, #343a46); --soft: light-dark(#f4f6f9, #1b1f27);
  --text: light-dark(#1a1f29, #e6e9ef); --faint: light-dark(#5b6473, #9aa4b5); --accent: light-dark(#3b4cca, #8f9dff);
  --good: light-dark(#0a7a3d, #4fd48a); --bad: light-dark(#b3261e, #ff8a80); --wait: light-dark(#8a5a00, #f0b64d); }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: light-dark(#fff, #12151b); }
header, main { max-width: 72rem; margin: 0 auto; padding: 1rem 1.25rem; }
h1 { font-size: 1.25rem; margin: 0 0 .5rem; } h2 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
code, pre, .mono { font-family: ui-monospace, monospace; font-size: .86em; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem .8rem; margin: 0; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
.bar { display: flex; flex-wrap: wrap; gap: .5rem; align-items: end; margin: .9rem 0 0; padding: .7rem;
  background: var(--soft); border: 1px solid var(--line); border-radius: .5rem; }
.bar fieldset { display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; border: 0; margin: 0; padding: 0 .6rem 0 0; }
.bar legend { float: left; padding: 0 .4rem 0 0; color: var(--faint); }
button, select, input { font: inherit; color: inherit; padding: .25rem .6rem; border: 1px solid var(--line);
  border-radius: .35rem; background: light-dark(#fff, #232833); }
button { cursor: pointer; } button:hover { border-color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 1px; }
input[type=number] { width: 6rem; }
.jobs { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); padding: 0; margin: 0; list-style: none; }
.job { border: 1px solid var(--line); border-radius: .5rem; overflow: hidden; background: var(--soft); }
.job .media { display: grid; place-items: center; height: 9.5rem; background: light-dark(#e3e7ee, #0c0e12); color: var(--faint); }
.job img, .job video { max-width: 100%; height: 9.5rem; object-fit: contain; }
.job .text { padding: .6rem .75rem; } .job p { margin: .2rem 0; overflow-wrap: anywhere; }
.status { font-weight: 600; color: var(--wait); } .status.completed { color: var(--good); }
.status.failed, .status.blocked, .status.canceled, .refused { color: var(--bad); }
.faint { color: var(--faint); } .scroll { overflow-x: auto; max-height: 26rem; overflow-y: auto; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; color: var(--faint); }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--faint); font-weight: 500; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.path { overflow-wrap: anywhere; } .skip { position: absolute; left: -99rem; } .skip:focus { left: .5rem; top: .5rem; }
#say { min-height: 1.5em; color: var(--faint); margin: .5rem 0 0; }
kbd { border: 1px solid var(--line); border-radius: .25rem; padding: 0 .3rem; font-size: .85em; }
@media (prefers-reduced-motion: no-preference) { .job { transition: border-color .2s; } }
`;
