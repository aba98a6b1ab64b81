import { execSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * One target of binding.gyp as a compiler needs it.
 * @typedef {{ name: string, sources: string[], flags: string[], defines: string[], includes: string[], libraries: string[] }} Target
 */

/**
 * The targets of binding.gyp for another machine than this one: gyp itself wants Apple's tools for a Mac. Of gyp's language it knows what
 * that file is written in: comments, conditions of one comparison, lists of variables and of commands.
 * @param {string} root @param {{ os: string, cpu: string }} platform as Node.js names it @returns {Target[]}
 */
export function readGyp(root, { os, cpu }) {
  const text = readFileSync(join(root, 'binding.gyp'), 'utf8');
  const gyp = JSON.parse(text.replace(/^\s*#.*$/gm, ''));
  const names = { OS: os === 'darwin' ? 'mac' : os, target_arch: cpu };
  const whole = merged(gyp, names);
  const { cflags_cc = [], include_dirs = [] } = whole.target_defaults;
  return whole.targets.map((target) => {
    const own = merged(target, names);
    const list = (name) => expanded(own[name] ?? [], whole.variables, root);
    return {
      name: own.target_name,
      sources: list('sources'),
      flags: [...expanded(cflags_cc, whole.variables, root), ...list('cflags_cc')],
      defines: list('defines'),
      includes: [...expanded(include_dirs, whole.variables, root), ...list('include_dirs')],
      libraries: list('libraries'),
    };
  });
}

/** An object with those of its conditions that hold: their lists come after its own. */
function merged({ conditions = [], ...own }, names) {
  const all = { ...own };
  for (const [condition, more] of conditions) {
    const [, name, value] = /^(\w+)=='(\w+)'$/.exec(condition) ?? [];
    if (name === undefined || !(name in names)) {
      throw new Error(`binding.gyp: the condition "${condition}" is none of NAME=='value'.`);
    }
    if (names[name] !== value) continue;
    for (const [key, list] of Object.entries(more)) all[key] = [...(all[key] ?? []), ...list];
  }
  return all;
}

/** "<@(variable)" and "<!@(command)" stand for several entries. */
function expanded(list, variables, root) {
  return list.flatMap((entry) => {
    const command = /^<!@\((.*)\)$/s.exec(entry)?.[1];
    if (command !== undefined) {
      const words = execSync(command, { cwd: root, encoding: 'utf8' }).split('\n');
      return words.map((word) => word.trim().replace(/^"(.*)"$/, '$1')).filter((word) => word !== '');
    }
    const variable = /^<@\((\w+)\)$/.exec(entry)?.[1];
    return variable === undefined ? [entry] : variables[variable];
  });
}
