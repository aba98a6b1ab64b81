import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FLOORS, INNER_FLOORS, STRANGERS } from '../tools/support/floors.js';
import { readDocument, repository } from './support/documents.js';

interface Arrow {
  from: string;
  to: string;
}

const sources = FLOORS.flatMap((room) =>
  readdirSync(join(repository, room), { recursive: true, encoding: 'utf8' })
    .filter((path) => /(?<!\.d)\.(ts|mjs|js)$/.test(path) && !path.includes('node_modules'))
    .map((path) => `${room}/${path.replaceAll('\\', '/')}`),
);
const known = new Set(sources);

/** Modules that a module imports (types too), loads when it needs them, or starts a thread with. */
function arrowsFrom(from: string): Arrow[] {
  const text = readFileSync(join(repository, from), 'utf8');
  const named = text.matchAll(
    /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*|\bnew URL\(\s*)['"](\.{1,2}\/[^'"]+)['"]/g,
  );
  return Array.from(named, ([, name]) => posix.join(posix.dirname(from), name!))
    .map((path) => [path, path.replace(/\.js$/, '.ts')].find((one) => known.has(one)) ?? path)
    .map((to) => ({ from, to }));
}

const arrows = sources.flatMap(arrowsFrom);
const roomOf = (path: string) => path.split('/', 1)[0]!;
const floorOf = (path: string) => (FLOORS as readonly string[]).indexOf(roomOf(path));

describe('the rooms', () => {
  it('hold all sources, and are found by their imports', () => {
    expect(sources.length).toBeGreaterThan(500);
    expect(arrows.filter(({ to }) => known.has(to)).length).toBeGreaterThan(2000);
  });

  it('have no arrow that runs upwards', () => {
    const upward = arrows.filter(({ from, to }) => known.has(to) && floorOf(to) > floorOf(from));
    expect(upward).toEqual([]);
  });

  it('import no code of the tests', () => {
    expect(arrows.filter(({ to }) => /^test\/.*\.(js|mjs|ts)$/.test(to))).toEqual([]);
  });

  it('know no strangers', () => {
    const isStranger = ({ from, to }: Arrow) => STRANGERS[roomOf(from)]?.includes(roomOf(to)) ?? false;
    expect(arrows.filter(isStranger)).toEqual([]);
  });

  it.each(Object.entries(INNER_FLOORS))(
    'of %s have floors inside, which no arrow climbs',
    (folder, floors) => {
      const partOf = (path: string) =>
        path
          .slice(folder.length + 1)
          .split('/', 1)[0]!
          .replace(/\.(ts|mjs|js)$/, '');
      const levels = new Map(floors.flatMap((parts, level) => parts.map((part) => [part, level] as const)));
      const inside = sources.filter((path) => path.startsWith(`${folder}/`));
      const parts = new Set(inside.map(partOf));
      expect([...parts].filter((part) => !levels.has(part) && part !== 'bin')).toEqual([]);
      expect([...levels.keys()].filter((part) => !parts.has(part))).toEqual([]);
      const within = arrows.filter(
        ({ from, to }) => from.startsWith(`${folder}/`) && known.has(to) && to.startsWith(`${folder}/`),
      );
      const climbs = ({ from, to }: Arrow) =>
        partOf(from) !== partOf(to) && levels.get(partOf(to))! >= levels.get(partOf(from))!;
      expect(within.filter(climbs).map(({ from, to }) => `${from} -> ${to}`)).toEqual([]);
    },
  );

  it('are the rows of the table in ARCHITECTURE.md, from the ground up', () => {
    const table = readDocument('ARCHITECTURE.md').split('## The rooms')[1]!.split('\n### ')[0]!;
    const rows = Array.from(table.matchAll(/^\| `([\w-]+)\/` \|/gm), (match) => match[1]!);
    expect(rows.filter((room) => FLOORS.some((floor) => floor === room))).toEqual([...FLOORS]);
  });
});
