// Prints the seconds of the stages that .ci/stages.sh noted: of the clock, and of all processors.
//
//     node .ci/stage-table.mjs FOLDER
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * A stage as its shell noted it: begin and end in seconds since 1970, then the two lines of `times` (of the shell, and of its
 * children; user and system, as 1m2.345s).
 *
 * @param {string} name @param {string} text
 */
export function stageOf(name, text) {
  // Bash writes numbers with the comma or point of the locale.
  const [moments = '', ...times] = text.trim().replaceAll(',', '.').split('\n');
  const [begun, ended] = moments.split(' ').map(Number);
  const parts = Array.from(
    times.join(' ').matchAll(/(\d+)m([\d.]+)s/g),
    ([, m, s]) => Number(m) * 60 + Number(s),
  );
  return { name, begun, ended, cpu: parts.reduce((sum, part) => sum + part, 0) };
}

/**
 * The stages in the order in which they began; those that ran at the same time overlap, so that all together took less.
 *
 * @param {readonly ReturnType<typeof stageOf>[]} stages
 */
export function stageTable(stages) {
  const row = (name, wall, cpu) => `${name.padEnd(24)}${wall.padStart(10)}${cpu.padStart(12)}`;
  const inOrder = stages.toSorted((a, b) => a.begun - b.begun);
  const seconds = (value) => value.toFixed(1);
  const wall = Math.max(...stages.map(({ ended }) => ended)) - Math.min(...stages.map(({ begun }) => begun));
  const cpu = stages.reduce((sum, stage) => sum + stage.cpu, 0);
  return [
    row('Stage', 'seconds', 'processor s'),
    ...inOrder.map((stage) => row(stage.name, seconds(stage.ended - stage.begun), seconds(stage.cpu))),
    row('all', seconds(wall), seconds(cpu)),
  ].join('\n');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [folder] = process.argv.slice(2);
  console.log(
    stageTable(readdirSync(folder).map((name) => stageOf(name, readFileSync(join(folder, name), 'utf8')))),
  );
}
