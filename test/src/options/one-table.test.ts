import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { option, says, worded } from '../../../base/named-text.js';
import { wholeNumber } from '../../../base/option-values.js';
import type { GptManagerOptions } from '../../../callbacks/gpt-manager-options.js';
import { ofServe } from '../../../callbacks/options/option.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const KV_CACHE = '../../../callbacks/options/kv-cache-options.js';
const folder = temporaryFolder('skein-table');

/** An option that there is not. */
const madeUp = ofServe(wholeNumber(3, 30_000), {
  name: 'kvCacheNapSeconds',
  seedName: 'kvCacheConfig.napLength',
  default: 6000,
  plain: wholeNumber(3, 30),
  toField: (seconds) => 1000 * seconds,
  flag: {
    group: 'KV cache',
    unit: 'seconds',
    defaultText: '6',
    formerly: 'napLength',
    aliases: ['catNap'],
    help: 'how long the cache naps',
  },
});

beforeAll(() => {
  vi.resetModules();
  vi.doMock(KV_CACHE, async (original) => {
    const module = await original<typeof import('../../../callbacks/options/kv-cache-options.js')>();
    return { ...module, KV_CACHE_OPTIONS: { ...module.KV_CACHE_OPTIONS, napMs: madeUp } };
  });
});

afterAll(() => {
  vi.doUnmock(KV_CACHE);
  vi.resetModules();
});

const valueIn = (config: object) => (config as { kvCacheNapSeconds?: number }).kvCacheNapSeconds;

function file(text: string): string {
  const path = join(folder, 'config.yaml');
  writeFileSync(path, text);
  return path;
}

describe('an option that is added to the table', () => {
  it('has a flag with an alias, a variable, a key in a file, for the server and for a model', async () => {
    const { loadConfig } = await import('../../../src/settings/config.js');
    const { flagsInGroups } = await import('../../../src/settings/flags.js');
    const { OPTIONS } = await import('../../../src/options/table.js');
    const command = new Command();
    for (const flag of flagsInGroups(OPTIONS)) command.addOption(flag);
    const given = (...args: string[]) => command.parse(args, { from: 'user' }).opts();
    expect(valueIn(loadConfig({ flags: given('--kv-cache-nap-seconds', '7') }))).toBe(7);
    expect(valueIn(loadConfig({ flags: { catNap: '8' } }))).toBe(8);
    expect(valueIn(loadConfig({ environment: { SKEIN_KV_CACHE_NAP_SECONDS: '9' } }))).toBe(9);
    for (const key of ['kvCacheNapSeconds', 'kv-cache-nap-seconds', 'cat-nap', 'catNap']) {
      expect(valueIn(loadConfig({ file: file(`${key}: 10`) }))).toBe(10);
    }
    const [model] = loadConfig({ file: file('models: [{model: m, kvCacheNapSeconds: 11}]') }).models;
    expect(valueIn(model!.options)).toBe(11);
    expect(valueIn(loadConfig({}))).toBeUndefined();
  });

  it('is refused out of its range, and by the name that it had, wherever it stands', async () => {
    const { loadConfig } = await import('../../../src/settings/config.js');
    const { refusalOfFlag } = await import('../../../src/options/old-names.js');
    expect(() => loadConfig({ flags: { kvCacheNapSeconds: '31' } })).toThrow(
      '--kv-cache-nap-seconds is 31; it must be a whole number from 3 to 30.',
    );
    expect(() => loadConfig({ environment: { SKEIN_KV_CACHE_NAP_SECONDS: 'x' } })).toThrow(
      'SKEIN_KV_CACHE_NAP_SECONDS is "x"; it must be a whole number from 3 to 30.',
    );
    expect(refusalOfFlag('--nap-length', ['--kv-cache-nap-seconds'])).toBe(
      '--nap-length is called --kv-cache-nap-seconds now.',
    );
    expect(() => loadConfig({ environment: { SKEIN_NAP_LENGTH: '5' } })).toThrow(
      'SKEIN_NAP_LENGTH is called SKEIN_KV_CACHE_NAP_SECONDS now.',
    );
    expect(() => loadConfig({ file: file('napLength: 5') })).toThrow(
      /: napLength is called kvCacheNapSeconds now\.$/,
    );
    expect(() => loadConfig({ file: file('models: [{model: m, nap-length: 5}]') })).toThrow(
      /entry 1 of models in .*: napLength is called kvCacheNapSeconds now\.$/,
    );
  });

  it('is in the help and in the completion of shells', async () => {
    const { flagsInGroups } = await import('../../../src/settings/flags.js');
    const { OPTIONS } = await import('../../../src/options/table.js');
    const { completionTree } = await import('../../../src/completion/tree.js');
    const command = new Command('serve');
    for (const flag of flagsInGroups(OPTIONS)) command.addOption(flag);
    const help = command.helpInformation();
    const [, ofTheCache] = help.split('\nKV cache:\n');
    expect(ofTheCache!.split('\n\n')[0]).toContain('--kv-cache-nap-seconds <SECONDS>');
    expect(help.replaceAll(/\s+/g, ' ')).toContain(
      'how long the cache naps (SKEIN_KV_CACHE_NAP_SECONDS; default: 6)',
    );
    expect(help).not.toContain('cat-nap');
    const root = new Command('skein').addCommand(command);
    const [serve] = completionTree(root).commands;
    expect(serve!.options.map(({ long }) => long)).toContain('--kv-cache-nap-seconds');
  });

  it('has its rows in the documents, and names in messages', async () => {
    const documents = await import('../../../tools/option-documents.js');
    const { withFlagNames, withPlainNames } = await import('../../../src/options/flag-names.js');
    expect(documents.flagsTables().split('### KV cache')[1]).toContain(
      '| `--kv-cache-nap-seconds` | `SKEIN_KV_CACHE_NAP_SECONDS` | seconds | 6 | how long the cache naps Also `--cat-nap`. |',
    );
    expect(documents.namesTable()).toContain(
      '| `optionalParams.kvCacheConfig.napMs` | `kvCacheConfig.napLength` |',
    );
    expect(documents.managerTable()).toContain(
      '| `optionalParams.kvCacheConfig.napMs` | 6000 | as `--kv-cache-nap-seconds` |',
    );
    expect(documents.formerNamesTable()).toContain('| `--nap-length` | `--kv-cache-nap-seconds` |');
    const told = says`${option('kvCacheConfig.napMs')} is 2.`;
    expect(withFlagNames(told)).toBe('--kv-cache-nap-seconds is 2.');
    expect(worded(withPlainNames(told))).toBe('kvCacheNapSeconds is 2.');
  });

  it('is taken by Skein.load, which hands it to the engine, and by GptManager, in their ranges', async () => {
    const { checkModelOptions } = await import('../../../src/library/options/model-options.js');
    const check: (options: unknown) => void = checkModelOptions;
    const { loadRequest } = await import('../../../src/serving/host-options.js');
    const { checkManagerOptions } = await import('../../../engine/options/check-manager-options.js');
    const options = { model: 'm', kvCacheNapSeconds: 7 };
    check(options);
    expect(() => check({ ...options, kvCacheNapSeconds: 2 })).toThrow(
      'kvCacheNapSeconds is 2; it must be a whole number from 3 to 30.',
    );
    expect(() => check({ model: 'm', napLength: 7 })).toThrow(
      'Skein.load: napLength is called kvCacheNapSeconds now.',
    );
    const engines = { engine: { directory: '/engine' }, draft: null } as never;
    const { params } = loadRequest(options, engines);
    expect(params.kvCacheConfig).toEqual({ napMs: 7000 });
    const manager = (napMs: unknown) =>
      checkManagerOptions({
        enginePath: '/engine',
        modelType: 'InflightFusedBatching',
        maxBeamWidth: 1,
        schedulerPolicy: 'GUARANTEED_NO_EVICT',
        getInferenceRequests: () => [],
        sendResponse: () => {},
        optionalParams: { kvCacheConfig: { napMs } },
      } as GptManagerOptions);
    expect(() => manager(7000)).not.toThrow();
    expect(() => manager(2)).toThrow('kvCacheConfig.napMs is 2; it must be a whole number from 3 to 30000.');
  });
});
