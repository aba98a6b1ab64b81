import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadingOptions } from '../../../src/commands/loading-options.js';
import { KvEvents } from '../../../src/serving/kv-events/kv-events.js';
import type { ModelOptions } from '../../../src/serving/model-options.js';
import { loadConfig } from '../../../src/settings/config.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const folder = temporaryFolder('skein-kv-events');
const KEY = 'Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID';
const keyFile = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const mine = keyFile('mine.key_secret', `public-key = "${KEY}"\nsecret-key = "${KEY}"\n`);
const theirs = keyFile('theirs.key', `public-key = "${KEY}"\n`);

const LOCAL = 'tcp://127.0.0.1:*';
const open = (options: Partial<ModelOptions>) =>
  KvEvents.open({ model: 'm', prefixCaching: true, ...options }, () => {});

describe('options for events of the KV cache', () => {
  it.each<[string, Partial<ModelOptions>]>([
    ['kvEventsReplayEndpoint needs kvEventsEndpoint', { kvEventsReplayEndpoint: LOCAL }],
    ['kvEventsTopic needs kvEventsEndpoint', { kvEventsTopic: 'kv' }],
    ['kvEventsEndpoint needs prefixCaching', { kvEventsEndpoint: LOCAL, prefixCaching: false }],
    ['kvEventsEndpoint needs prefixCaching', { kvEventsEndpoint: LOCAL, batchingScheme: 'V1' }],
    ['kvEventsEndpoint is "5557"', { kvEventsEndpoint: '5557' }],
    ['has to listen', { kvEventsEndpoint: LOCAL, kvEventsReplayEndpoint: 'tcp://router:1' }],
    ['kvEventsTopic has 600 bytes', { kvEventsEndpoint: LOCAL, kvEventsTopic: 'x'.repeat(600) }],
    ['there is no such file', { kvEventsEndpoint: LOCAL, kvEventsCurveKeyFile: join(folder, 'none') }],
    ['has no line secret-key', { kvEventsEndpoint: LOCAL, kvEventsCurveKeyFile: theirs }],
    ['needs kvEventsCurveKeyFile', { kvEventsEndpoint: LOCAL, kvEventsCurvePeerFile: [theirs] }],
    ['has 0 files', { kvEventsEndpoint: 'tcp://router:5557', kvEventsCurveKeyFile: mine }],
  ])('%s', async (message, options) => {
    await expect(open(options)).rejects.toThrow(message);
  });

  it('tell whether strangers can read', async () => {
    expect(await open({})).toBeNull();
    const infos = [];
    for (const options of [
      { kvEventsEndpoint: LOCAL },
      { kvEventsEndpoint: 'tcp://*:*', kvEventsReplayEndpoint: LOCAL },
      { kvEventsEndpoint: 'tcp://*:*', kvEventsCurveKeyFile: mine, kvEventsCurvePeerFile: [theirs] },
    ]) {
      const events = await open(options);
      infos.push(events!.info);
      events!.close();
    }
    expect(infos.map(({ isOpen }) => isOpen)).toEqual([false, true, false]);
    expect(infos[1]!.replayAddress).toMatch(/^tcp:\/\/127\.0\.0\.1:\d+$/);
  });

  it('belong to one model each, and to none that clients load', () => {
    const flags = { model: ['a=/a', 'b=/b'], kvEventsEndpoint: 'tcp://*:5557' };
    expect(() => loadConfig({ flags })).toThrow('for the models a and b; each needs its own');
    const same = { model: ['a=/a'], kvEventsEndpoint: LOCAL.replace('*', '5557') };
    expect(() => loadConfig({ flags: { ...same, kvEventsReplayEndpoint: same.kvEventsEndpoint } })).toThrow(
      'two things of a',
    );
    const none = { modelsDir: '/models', kvEventsEndpoint: 'tcp://*:5557' };
    expect(() => loadConfig({ flags: none })).toThrow('--kv-events-endpoint is for a model of --model');
    const config = loadConfig({ flags: same });
    expect(loadingOptions(config.models[0]!, config).kvEventsEndpoint).toBe(same.kvEventsEndpoint);
    const other = { name: 'c', aliases: [], model: '/c', options: {}, adapters: {} };
    expect(loadingOptions(other, config).kvEventsEndpoint).toBeUndefined();
    const own = { ...other, options: { kvEventsEndpoint: 'tcp://*:1' } };
    expect(loadingOptions(own, config).kvEventsEndpoint).toBe('tcp://*:1');
  });
});
