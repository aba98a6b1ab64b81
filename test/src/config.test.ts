import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig, UsageError } from '../../src/config.js';
import { flagName, flagsTable, OPTIONS, optionsTable, variableName } from '../../src/config-options.js';
import { withOptionTables } from '../../tools/option-tables.js';

const folder = mkdtempSync(join(tmpdir(), 'skein-config-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

describe('loadConfig', () => {
  it('takes flag over environment over file over default', () => {
    const path = file('precedence.yaml', 'model: from-file\nport: 1\nmaxBatchSize: 2\nhost: file-host\n');
    const environment = {
      SKEIN_PORT: '3',
      SKEIN_MAX_BATCH_SIZE: '4',
      SKEIN_CONFIG: '/nowhere-because-the-flag-wins',
    };
    const config = loadConfig({ flags: { port: '5' }, environment, file: path });
    expect(config).toMatchObject({
      model: 'from-file',
      host: 'file-host',
      port: 5,
      maxBatchSize: 4,
      maxQueueSize: 256,
    });
  });

  it('reads JSON and YAML, option names and flag names, and the path from SKEIN_CONFIG', () => {
    const json = file('config.json', '{"model": "m", "max-queue-size": 7, "enableChunkedContext": false}');
    const config = loadConfig({ environment: { SKEIN_CONFIG: json } });
    expect(config).toMatchObject({ model: 'm', maxQueueSize: 7, enableChunkedContext: false });
  });

  it('reads switches and numbers from text', () => {
    const environment = { SKEIN_MODEL: 'm', SKEIN_ENABLE_CHUNKED_CONTEXT: 'off' };
    const flags = { freeGpuMemoryFraction: '0.5' };
    expect(loadConfig({ environment, flags })).toMatchObject({
      enableChunkedContext: false,
      freeGpuMemoryFraction: 0.5,
    });
  });

  it('takes an empty variable as not set', () => {
    expect(loadConfig({ environment: { SKEIN_MODEL: 'm', SKEIN_PORT: '' } }).port).toBe(8000);
  });

  const wrong: [string, () => unknown, RegExp][] = [
    ['a missing model', () => loadConfig({}), /--model is required.*SKEIN_MODEL/],
    ['a port that is no number', () => loadConfig({ flags: { model: 'm', port: 'abc' } }), /--port is "abc"/],
    [
      'a port out of range',
      () => loadConfig({ flags: { model: 'm', port: '70000' } }),
      /--port is 70000.*65535/,
    ],
    [
      'a mistyped choice',
      () => loadConfig({ flags: { model: 'm' }, environment: { SKEIN_SCHEDULER_POLICY: 'MAX_UTILISATION' } }),
      /SKEIN_SCHEDULER_POLICY is "MAX_UTILISATION".*GUARANTEED_NO_EVICT, MAX_UTILIZATION.*Did you mean MAX_UTILIZATION\?/,
    ],
    [
      'an unknown option in a file',
      () => loadConfig({ file: file('unknown.yaml', 'modle: x') }),
      /unknown option modle\. Did you mean model\?/,
    ],
    [
      'a value of the wrong type in a file',
      () => loadConfig({ file: file('type.yaml', 'model: [a]') }),
      /model in .*type\.yaml is \["a"\]/,
    ],
    ['a file that is no mapping', () => loadConfig({ file: file('list.yaml', '- a') }), /must hold options/],
    [
      'a file that is not there',
      () => loadConfig({ file: join(folder, 'none.yaml') }),
      /cannot be read: there is no such file\.$/,
    ],
    [
      'a file that is not YAML',
      () => loadConfig({ file: file('bad.yaml', 'a: [') }),
      /is neither JSON nor YAML: .*[^:]\.$/,
    ],
  ];
  it.each(wrong)('refuses %s in one sentence that names it', (_, load, message) => {
    expect(load).toThrow(UsageError);
    expect(load).toThrow(message);
  });
});

describe('the tables of options', () => {
  it('have a row with all names for every option', () => {
    for (const name of Object.keys(OPTIONS)) {
      const names = `| \`--${flagName(name)}\` | \`${variableName(name)}\` |`;
      expect(optionsTable()).toContain(`${names} \`${name}\` |`);
      expect(flagsTable()).toContain(names);
    }
    for (const table of [optionsTable(), flagsTable()]) {
      const widths = table.split('\n').map((line) => line.replaceAll('\\|', '').split('|').length);
      expect(new Set(widths).size).toBe(1);
    }
  });

  it.each(['README.md', 'ARCHITECTURE.md'])(
    'in %s are up to date (npx tsx tools/write-option-tables.ts)',
    (name) => {
      const path = new URL(`../../${name}`, import.meta.url);
      const text = readFileSync(path, 'utf8');
      expect(withOptionTables(text)).toBe(text);
      if (name === 'README.md') expect(text).toContain(flagsTable());
    },
  );
});
