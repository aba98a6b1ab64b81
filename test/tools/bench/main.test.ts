import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BENCHES } from '../../../tools/bench/benches.js';
import { benchHelp, benchList, runBenches } from '../../../tools/bench/main.js';
import { readDocument, repository } from '../../support/documents.js';

const names = Object.keys(BENCHES);

async function printed(...args: string[]): Promise<string> {
  const lines: string[] = [];
  const ignore = () => {};
  await runBenches(args, { print: (text) => lines.push(text), progress: ignore, write: ignore });
  return lines.join('\n');
}

describe('npm run bench', () => {
  it('lists every folder of tools/bench, in order', async () => {
    const folders = readdirSync(join(repository, 'tools/bench'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    expect(names).toEqual(folders.toSorted());
    const list = await printed();
    expect(list).toBe(benchList());
    for (const [name, { summary }] of Object.entries(BENCHES)) {
      const line = list.split('\n').find((text) => text.startsWith(`  ${name} `));
      expect(line?.endsWith(`  ${summary}`), name).toBe(true);
    }
  });

  it('refuses a name that it does not know, and says which are near', async () => {
    await expect(printed('kernl')).rejects.toThrow("There is no bench 'kernl': expected one of agreement,");
    await expect(printed('kernl')).rejects.toThrow('Did you mean kernel?');
    await expect(printed('quite another')).rejects.toThrow(new RegExp(`${names.at(-1)}\\.$`));
  });

  it.each(names)('%s has help, and sections that its document has', async (name) => {
    const { bench } = await BENCHES[name]!.load();
    const help = await printed(name, '--help');
    expect(help).toBe(await benchHelp(name));
    expect(help).toContain(`npm run bench -- ${name} [options]`);
    for (const flag of [...Object.keys(bench.flags), 'note', 'write']) expect(help).toContain(`  --${flag}`);
    if (bench.document === null) {
      expect(bench.sections).toEqual([]);
      return;
    }
    expect(bench.sections.length).toBeGreaterThan(0);
    expect(existsSync(join(repository, bench.document))).toBe(true);
    const text = readDocument(bench.document);
    for (const section of bench.sections) {
      expect(text).toContain(`<!-- ${section} -->\n`);
      expect(text).toContain(`\n<!-- /${section} -->`);
    }
  });

  it('refuses a flag that the bench does not have, before it measures', async () => {
    await expect(printed('iteration', '--wieghts', 'bf16')).rejects.toThrow('--wieghts');
  });
});
