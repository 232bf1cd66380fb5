// npm run worlds -- --minutes 60 --seed 7: runs worlds for a given time, reproducible by seed.
import { parseArgs } from 'node:util';
import { explore } from './explore.js';
import { CORNERS } from './world.js';

const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } });
const minutes = Number(values.minutes ?? 10);
const seed = Number(values.seed ?? Date.now() & 0x7fffffff);
process.stdout.write(`seed ${seed}\n`);
const { worlds, cpuMinutes, reached } = await explore({ minutes, seed });
const corners = CORNERS.map((corner) => `${corner}: ${reached.get(corner) ?? 0}\n`);
process.stdout.write(`${worlds} worlds, ${Math.round(worlds / cpuMinutes)} per CPU minute\n${corners.join('')}`);
