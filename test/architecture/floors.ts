import type { Breach, Import, Law } from './source.js';
import { importsOf } from './source.js';

/**
 * Lowest first: an import may only point to a lower floor, to a unit that is listed before it on the same floor, or stay
 * inside its own folder. Type imports count.
 */
const FLOORS: readonly (readonly string[])[] = [
  ['runtime', 'catalog', 'schemas'],
  ['errors'],
  ['rules'],
  ['store', 'ledger'],
  ['uploading', 'webhooks'],
  ['transport'],
  ['downloading', 'waiting'],
  ['client'],
  ['adapters'],
  ['index', 'cli'],
];

/** Durable runs and the proxy copy and serve files; a page knows the types of its proxy, and the hook is the page's. */
const ADAPTERS_SEEN: Readonly<Record<string, readonly string[]>> = {
  durable: ['storage'],
  proxy: ['storage'],
  page: ['proxy'],
  react: ['page'],
};

/** The floors inside the sandbox, lowest first; files beside its folders stand above them all. */
const SANDBOX_FLOORS: readonly string[] = ['media', 'world', 'service', 'http', 'control', ''];
/** The sandbox's door makes clients for it. */
const SANDBOX_DOOR = 'src/sandbox/index.ts';

/** What the sandbox's tower may see of the rest: it is the other side of the wire, and shares only the contract. */
const SEEN_BY_SANDBOX =
  /^src\/(store\/port\.ts$|schemas\/|errors\/|rules\/|runtime\/|catalog\.ts$|(webhooks\/signature|uploading\/sniff)\.ts$)/;

/** The one file that talks to the network: resources never reach it, not even through another file. */
const BEHIND_THE_PORT = 'src/transport/create-transport.ts';

/** The folder or file below `src` that a path belongs to: `src/limits/x.ts` is of `limits`, `src/client/client.ts` of `client`. */
function unitOf(path: string): string {
  return path.replace(/^src\//, '').replace(/(\/.*|\.ts)$/, '');
}

function adapterOf(path: string): string | undefined {
  return path.split('/')[2];
}

function floorOf(path: string): number {
  return FLOORS.findIndex((units) => units.includes(unitOf(path)));
}

/** The floor of a file inside the sandbox. */
function sandboxFloorOf(path: string): number {
  if (path === SANDBOX_DOOR) return SANDBOX_FLOORS.length;
  return SANDBOX_FLOORS.indexOf(/^src\/sandbox\/(?:([^/]+)\/)?/.exec(path)?.[1] ?? '');
}

/** Law 0: arrows point down. */
export const arrowsPointDown = overArrows((arrow, target) => {
  const [from, to] = [unitOf(arrow.from.path), unitOf(target)];
  if (from === 'sandbox' && to === 'sandbox') {
    const isUp = sandboxFloorOf(target) > sandboxFloorOf(arrow.from.path);
    return isUp ? `${arrow.from.path} must not import ${target}: it stands above it` : undefined;
  }
  if (from === 'adapters' && to === 'adapters') {
    const [one = '', other = ''] = [adapterOf(arrow.from.path), adapterOf(target)];
    const isAllowed = one === other || ADAPTERS_SEEN[one]?.includes(other);
    return isAllowed ? undefined : `adapters do not import each other: ${one}, ${other}`;
  }
  if (from === to) return undefined;
  if (arrow.from.path === SANDBOX_DOOR && target === 'src/client/client.ts') return undefined;
  if (from === 'sandbox') return SEEN_BY_SANDBOX.test(target) ? undefined : `the sandbox must not see ${target}`;
  if (to === 'sandbox') return from === 'cli' ? undefined : `only the command line sees the sandbox, not ${from}`;
  const [high, low] = [floorOf(arrow.from.path), floorOf(target)];
  if (high === -1) return `${from} stands on no floor; give it one in test/architecture/floors.ts`;
  if (low === -1) return `${to} stands on no floor; give it one in test/architecture/floors.ts`;
  const units = FLOORS[high] ?? [];
  const isBelow = low < high || (low === high && units.indexOf(to) < units.indexOf(from));
  return isBelow ? undefined : `${from} must not import ${to}: it stands ${low === high ? 'beside' : 'above'} it`;
});

/** Law 2: only index, cli and doors see the client, and resources never see each other. */
export const insidesStayInside = overArrows((arrow, target) => {
  const from = unitOf(arrow.from.path);
  const ofSandbox = arrow.from.path === SANDBOX_DOOR;
  const isDoor = ofSandbox || floorOf(arrow.from.path) >= floorOf('src/client/client.ts');
  if (target === 'src/client/client.ts' && !isDoor) return `${from} must not import the client`;
  const isResource = (path: string) => /^src\/client\/(characters|uploads|jobs|models)\.ts$/.test(path);
  return isResource(arrow.from.path) && isResource(target) ? 'resources must not import each other' : undefined;
});

/** Law 2: resources see the transport's port, and reach what stands behind it on no way round. */
export const resourcesSeeThePortOnly: Law = (sources) => {
  const arrows = new Map(sources.map((source) => [source.path, importsOf(source).filter(({ typeOnly }) => !typeOnly)]));
  const reaches = (path: string, seen: Set<string>): boolean => {
    if (path === BEHIND_THE_PORT) return true;
    if (seen.has(path)) return false;
    seen.add(path);
    return (arrows.get(path) ?? []).some(({ target }) => target !== undefined && reaches(target, seen));
  };
  const resources = sources
    .filter(({ path }) =>
      /^src\/client\/(characters|create|endpoint|jobs|models|output|run-calls|uploads)\.ts$/.test(path),
    )
    .flatMap(importsOf);
  return resources
    .filter(({ target }) => target !== undefined && reaches(target, new Set()))
    .map(({ from, line, target }) => ({
      path: from.path,
      line,
      message: `reaches ${BEHIND_THE_PORT} through ${target}`,
    }));
};

/** Law 1: no circles, type imports included. One breach for each circle, at the import that closes it. */
export const noCircles: Law = (sources) => {
  const arrows = new Map(sources.map((source) => [source.path, importsOf(source).filter((arrow) => arrow.target)]));
  const state = new Map<string, 'open' | 'done'>();
  const breaches: Breach[] = [];
  const visit = (path: string, trail: readonly string[]) => {
    state.set(path, 'open');
    for (const { target = '', line } of arrows.get(path) ?? []) {
      if (state.get(target) === 'open') {
        const circle = [...trail.slice(trail.indexOf(target)), target].map((file) => file.replace(/^src\//, ''));
        breaches.push({ path, line, message: `closes a circle: ${circle.join(' -> ')}` });
      } else if (!state.has(target)) visit(target, [...trail, target]);
    }
    state.set(path, 'done');
  };
  for (const { path } of sources) if (!state.has(path)) visit(path, [path]);
  return breaches;
};

function overArrows(check: (arrow: Import, target: string) => string | undefined): Law {
  return (sources) =>
    sources.flatMap(importsOf).flatMap((arrow) => {
      const message = arrow.target === undefined ? undefined : check(arrow, arrow.target);
      return message === undefined ? [] : [{ path: arrow.from.path, line: arrow.line, message }];
    });
}
