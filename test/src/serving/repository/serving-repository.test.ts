import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InferModel } from '../../../../src/serving/infer-model.js';
import type { ModelSource, ServedVersion } from '../../../../src/serving/repository/model-source.js';
import {
  type FoundModel,
  ServingRepository,
  type ServingRepositoryOptions,
} from '../../../../src/serving/repository/serving-repository.js';

/** A folder of models that a test changes, and what became of all that was started from it. */
class FakeFolder {
  readonly models = new Map<string, { stamp: string; versions: string[]; problem?: string }>();
  readonly running = new Set<ServedVersion>();
  readonly found = new Set<ServedVersion>();
  /** Instances beyond the configuration's of each load that was planned. */
  readonly addedInstances: number[] = [];
  started = 0;
  closed = 0;

  scan = async (): Promise<ReadonlyMap<string, FoundModel>> =>
    new Map(
      Array.from(this.models, ([name, { stamp }]) => [name, { stamp, source: this.source(name) }] as const),
    );

  source(folder: string): ModelSource {
    return {
      plan: async (name, { values, addedInstances, config }) => {
        await sleep(0);
        this.addedInstances.push(addedInstances);
        const model = this.models.get(folder);
        if (model === undefined) throw new Error('its folder is gone');
        const { stamp, versions, problem } = { ...model };
        return {
          identity: config === undefined ? JSON.stringify([stamp, values, addedInstances]) : null,
          versions,
          start: async (version) => {
            await sleep(1);
            if (problem !== undefined) throw new Error(problem);
            return this.#start(name, version);
          },
        };
      },
    };
  }

  #start(name: string, version: string): ServedVersion {
    this.started++;
    const served: ServedVersion = {
      model: { version, config: { name } } as unknown as InferModel,
      served: null,
      isStuck: () => false,
      close: async () => {
        await sleep(1);
        if (this.running.delete(served)) this.closed++; // may be asked to end sooner
      },
    };
    this.running.add(served);
    return served;
  }
}

function open(folder: FakeFolder, options: Partial<ServingRepositoryOptions> = {}) {
  const errors: Error[] = [];
  const repository = new ServingRepository({
    mode: 'explicit',
    scan: () => folder.scan(),
    listener: {
      added: (version) => folder.found.add(version),
      removed: (version) => folder.found.delete(version),
    },
    onError: (error) => errors.push(error),
    drainMs: 1000,
    ...options,
  });
  return { repository, errors };
}

function folderWith(...names: string[]): FakeFolder {
  const folder = new FakeFolder();
  for (const name of names) folder.models.set(name, { stamp: '1', versions: ['1'] });
  return folder;
}

describe('a repository under explicit control', () => {
  it('has nothing loaded at first, and loads and unloads what clients name', async () => {
    const { repository } = open(folderWith('simple', 'other'));
    await repository.start([]);
    expect(await repository.index({ readyOnly: false })).toEqual([{ name: 'simple' }, { name: 'other' }]);
    expect(() => repository.find('simple', '')).toThrow(/'simple' has no available versions/);
    expect(await repository.load('simple')).toBe('simple');
    expect(repository.find('simple', '').version).toBe('1');
    expect(repository.isReady('simple', '1')).toBe(true);
    expect(await repository.index({ readyOnly: true })).toEqual([
      { name: 'simple', version: '1', state: 'READY' },
    ]);
    await repository.unload('simple');
    expect(repository.isReady('simple', '')).toBe(false);
    expect((await repository.index({ readyOnly: false }))[0]).toEqual({
      name: 'simple',
      version: '1',
      state: 'UNAVAILABLE',
      reason: 'unloaded',
    });
  });

  it('answers for the latest version where none is named', async () => {
    const folder = folderWith();
    folder.models.set('m', { stamp: '1', versions: ['2', '10'] });
    const { repository } = open(folder);
    await repository.start(null);
    expect(repository.find('m', '').version).toBe('10');
    expect(repository.find('m', '2').version).toBe('2');
    expect(() => repository.find('m', '3')).toThrow(/'m' version 3 is not found/);
    expect(repository.versions('m').map(({ version }) => version)).toEqual(['2', '10']);
  });

  it('does nothing where what runs is what the folder has', async () => {
    const folder = folderWith('m');
    const { repository } = open(folder);
    await repository.load('m');
    await repository.load('m');
    expect(folder.started).toBe(1);
    folder.models.get('m')!.stamp = '2';
    await repository.load('m');
    expect(folder.started).toBe(2);
    await expect.poll(() => folder.running.size).toBe(1);
  });

  it('keeps what runs where a reload fails, and says why', async () => {
    const folder = folderWith('m');
    const { repository } = open(folder);
    await repository.load('m');
    const running = repository.find('m', '');
    folder.models.set('m', { stamp: '2', versions: ['1', '2'], problem: 'the file is no model' });
    await expect(repository.load('m')).rejects.toThrow("failed to load 'm', the file is no model");
    expect(repository.find('m', '')).toBe(running);
    expect(await repository.index({ readyOnly: false })).toEqual([
      { name: 'm', version: '1', state: 'READY', reason: 'could not be loaded again: the file is no model' },
      { name: 'm', version: '2', state: 'UNAVAILABLE', reason: 'the file is no model' },
    ]);
    expect(folder.running.size).toBe(1);
  });

  it.each([
    ['the files are as they were', { stamp: '1', versions: ['1'] }],
    ['it is loaded anew', { stamp: '3', versions: ['1'] }],
  ])('forgets why a reload failed as soon as %s', async (_, model) => {
    const folder = folderWith('m');
    const { repository } = open(folder);
    await repository.load('m');
    folder.models.set('m', { stamp: '2', versions: ['1'], problem: 'the file is no model' });
    await expect(repository.load('m')).rejects.toThrow('the file is no model');
    expect(repository.rows()).toMatchObject([
      { state: 'READY', reason: expect.stringContaining('no model') },
    ]);
    folder.models.set('m', model);
    await repository.load('m');
    expect(repository.rows()).toEqual([{ name: 'm', version: '1', state: 'READY' }]);
  });

  it('is one load however often it is asked for at once', async () => {
    const folder = folderWith('m');
    const { repository } = open(folder);
    await Promise.all(Array.from({ length: 200 }, () => repository.load('m')));
    expect(folder.started).toBe(1);
  });

  it('runs contradictory commands in their order', async () => {
    const folder = folderWith('m');
    const { repository } = open(folder);
    const ends = [];
    for (let i = 0; i < 5; i++) ends.push(repository.load('m'), repository.unload('m'));
    await Promise.all([...ends, repository.load('m')]);
    expect(repository.isReady('m', '')).toBe(true);
    await Promise.all([repository.load('m'), repository.unload('m')]);
    expect(repository.isReady('m', '')).toBe(false);
    expect(folder.running.size).toBe(0);
  });

  it('names an unknown model', async () => {
    const { repository } = open(folderWith());
    await expect(repository.load('x')).rejects.toThrow(
      "failed to load 'x', failed to poll from model repository: no folder of this name is in --model-repository",
    );
    const { scan: _, ...rest } = { scan: undefined, mode: 'explicit' as const };
    const alone = new ServingRepository({
      ...rest,
      listener: { added: () => {}, removed: () => {} },
      onError: () => {},
      drainMs: 0,
    });
    await expect(alone.load('x')).rejects.toThrow(
      "failed to load 'x', failed to poll from model repository: the server has no --model-repository",
    );
    await repository.unload('x'); // it is unloaded, as Triton has it
    expect(() => repository.find('x', '')).toThrow(/unknown model: 'x'/);
  });
});

describe('a model without a folder', () => {
  const files = new Map([['1/model.mjs', new Uint8Array()]]);
  const withUploads = (folder: FakeFolder) => open(folder, { uploads: (name) => folder.source(name) });

  it('is loaded from the files of its load, stays over looks at the folders, and is gone once it is unloaded', async () => {
    const folder = folderWith('other');
    const { repository } = withUploads(folder);
    folder.scan = async () => new Map();
    folder.models.set('up', { stamp: '1', versions: ['3'] });
    expect(await repository.load('up', { config: '{}', files })).toBe('up');
    expect(await repository.index({ readyOnly: true })).toEqual([
      { name: 'up', version: '3', state: 'READY' },
    ]);
    expect(repository.find('up', '').version).toBe('3');
    await expect(repository.load('up')).rejects.toThrow("failed to load 'up', it is in no model repository");
    expect(repository.isReady('up', '3')).toBe(true);
    await repository.load('up', { config: '{}', files });
    expect(folder.started).toBe(2);
    await repository.unload('up');
    expect(await repository.index({ readyOnly: false })).toEqual([]);
    expect(folder.running.size).toBe(0);
  });

  it('says why its load failed, and leaves nothing', async () => {
    const folder = folderWith();
    const { repository } = withUploads(folder);
    folder.scan = async () => new Map();
    folder.models.set('up', { stamp: '1', versions: ['1'], problem: 'the file is no model' });
    await expect(repository.load('up', { config: '{}', files })).rejects.toThrow(
      "failed to load 'up', the file is no model",
    );
    expect(await repository.index({ readyOnly: false })).toEqual([]);
  });

  it.each(['', '.', '..', '.up', '../up', 'a/b', 'a\\b', 'a\0', 'x'.repeat(201)])(
    'is refused by a name that no folder has: %j',
    async (name) => {
      const folder = folderWith();
      const { repository } = withUploads(folder);
      await expect(repository.load(name, { config: '{}', files })).rejects.toThrow(
        'it can be no name of a model',
      );
      expect(folder.started).toBe(0);
    },
  );

  it('is unknown to a load without files, and to a server that takes none', async () => {
    const unknown = "failed to load 'up', failed to poll from model repository";
    await expect(withUploads(folderWith()).repository.load('up')).rejects.toThrow(unknown);
    await expect(open(folderWith()).repository.load('up', { config: '{}', files })).rejects.toThrow(unknown);
  });
});

describe('the start', () => {
  it('is over when every model is loaded or found wrong, and tells which are not yet', async () => {
    const folder = folderWith('a', 'b', 'c');
    folder.models.get('b')!.problem = 'the file is no model';
    const releases = new Map<string, () => void>();
    const found = await folder.scan();
    const held = Array.from(found, ([name, { stamp, source }]): [string, FoundModel] => {
      const gate = new Promise<void>((resolve) => releases.set(name, resolve));
      const plan: ModelSource['plan'] = async (...asked) => gate.then(() => source.plan(...asked));
      return [name, { stamp, source: { plan } }];
    });
    folder.scan = async () => new Map(held);
    const { repository } = open(folder, { mode: 'none' });
    expect(repository.starting).toEqual([]);
    const started = repository.start(null).catch((error: Error) => error.message);
    await expect.poll(() => repository.starting).toEqual(['a', 'b', 'c']);
    releases.get('a')!();
    await expect.poll(() => repository.starting).toEqual(['b', 'c']);
    releases.get('b')!();
    await expect.poll(() => repository.starting).toEqual(['c']);
    releases.get('c')!();
    expect(await started).toBe("failed to load 'b', the file is no model");
    expect(repository.starting).toBeNull();
  });

  it('is over where the folders cannot be read, and where nothing is to be loaded', async () => {
    const folder = folderWith('a');
    const { repository } = open(folder);
    await repository.start([]);
    expect(repository.starting).toBeNull();
    folder.scan = async () => {
      throw new Error('no such folder');
    };
    const { repository: unread } = open(folder);
    expect(unread.starting).toEqual([]);
    await expect(unread.start(null)).rejects.toThrow('no such folder');
    expect(unread.starting).toBeNull();
  });
});

describe('a model that is not there yet', () => {
  it('is to be asked again while the folders are read, and while it is loaded', async () => {
    const folder = folderWith('m');
    const source = folder.source('m');
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const plan: ModelSource['plan'] = async (...asked) => held.then(() => source.plan(...asked));
    folder.scan = async () => new Map([['m', { stamp: '1', source: { plan } }]]);
    const { repository } = open(folder, { mode: 'none' });
    const problem = () => caught(() => repository.find('m', ''));
    expect(problem()).toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('is being read'),
    });
    const started = repository.start(null);
    await expect
      .poll(problem)
      .toMatchObject({ kind: 'unavailable', message: expect.stringContaining('is being loaded') });
    release();
    await started;
    expect(repository.find('m', '').version).toBe('1');
    expect(() => repository.find('x', '')).toThrow(expect.objectContaining({ kind: 'notFound' }));
  });
});

function caught(work: () => unknown): unknown {
  try {
    work();
    return null;
  } catch (error) {
    return error;
  }
}

describe('endpoints', () => {
  it('go with their model where its dependents are unloaded too, and else stay', async () => {
    const folder = folderWith('m', 'm-9');
    const { repository } = open(folder);
    const names = () => repository.loaded().map(({ config }) => config.name);
    for (const values of [{}, { a: 1 }, { b: 1 }]) await repository.load('m', { values });
    await repository.load('m-9');
    await repository.unload('m');
    expect(names()).toEqual(['m-9', 'm-0', 'm-1']);
    await repository.unload('m', { unloadDependents: true });
    expect(names()).toEqual(['m-9']);
    await repository.load('m', { values: { c: 1 } });
    await repository.unload('m', { unloadDependents: true });
    expect(names()).toEqual(['m-9']);
    expect(folder.running.size).toBe(1);
  });

  it('are a model for each set of values, and one more instance where a load shares nothing', async () => {
    const folder = folderWith('m', 'm-1');
    const { repository } = open(folder);
    expect(await repository.load('m')).toBe('m');
    expect(await repository.load('m', { values: { a: 1 } })).toBe('m-0');
    expect(await repository.load('m', { values: { b: 2, a: 1 } })).toBe('m-2'); // m-1 is a model of its own
    expect(await repository.load('m', { values: { a: 1, b: 2 } })).toBe('m-2');
    expect(await repository.load('m', { values: {} })).toBe('m');
    expect(folder.started).toBe(3);
    expect(await repository.load('m', { values: { a: 1 }, share: false })).toBe('m-0');
    expect(folder.started).toBe(4);
    await repository.unload('m-0');
    expect(await repository.load('m', { values: { c: 3 } })).toBe('m-0');
    expect(await repository.load('m')).toBe('m');
  });

  it('have an instance more for each load that shares nothing, but for the first, and none for one that failed', async () => {
    const folder = folderWith('m');
    const { repository } = open(folder);
    const load = () => repository.load('m', { share: false }).catch(() => {});
    folder.models.get('m')!.problem = 'broken';
    for (let i = 0; i < 3; i++) await load();
    delete folder.models.get('m')!.problem;
    await Promise.all([load(), load(), load()]);
    folder.models.get('m')!.problem = 'broken';
    await Promise.all([load(), load()]);
    delete folder.models.get('m')!.problem;
    await load();
    folder.models.get('m')!.stamp = '2';
    await repository.load('m');
    expect(folder.addedInstances).toEqual([0, 0, 0, 0, 1, 2, 3, 3, 3, 3]);
    await repository.unload('m');
    await load();
    expect(folder.addedInstances.at(-1)).toBe(0);
  });

  it('are not counted where they could not be loaded, so that as many others can be', async () => {
    const folder = folderWith('m');
    const { repository } = open(folder);
    await repository.load('m');
    folder.models.get('m')!.problem = 'broken';
    for (let a = 0; a < 70; a++) {
      await expect(repository.load('m', { values: { a } })).rejects.toThrow('broken');
    }
    delete folder.models.get('m')!.problem;
    for (let a = 0; a < 63; a++) await repository.load('m', { values: { a } });
    await expect(repository.load('m', { values: { a: 63 } })).rejects.toThrow(
      "failed to load 'm', it is loaded with 64 sets of parameters already; at most 64 are taken",
    );
    expect(await repository.load('m')).toBe('m');
  });

  it('is one of its own for a load without parameters, where the first load had some', async () => {
    const folder = folderWith('m');
    const { repository } = open(folder);
    expect(await repository.load('m', { values: { a: 1 } })).toBe('m');
    expect(await repository.load('m')).toBe('m-0');
    expect(await repository.load('m')).toBe('m-0');
    expect(await repository.load('m', { values: {} })).toBe('m-0');
    expect(await repository.load('m', { values: { a: 1 } })).toBe('m');
    expect(folder.started).toBe(2);
    // An endpoint that is named keeps its parameters, and gets the instance that shares nothing.
    expect(await repository.load('m-0')).toBe('m-0');
    expect(await repository.load('m-0', { share: false })).toBe('m-0');
    expect(folder.addedInstances.at(-1)).toBe(1);
  });

  it('is the model itself for its first load, with whatever values', async () => {
    const { repository } = open(folderWith('m'));
    expect(await repository.load('m', { values: { a: 1 } })).toBe('m');
    expect(await repository.load('m', { values: {} })).toBe('m-0');
  });
});

describe('the folders', () => {
  it('decide where they are polled', async () => {
    const folder = folderWith('a', 'b');
    const { repository, errors } = open(folder, { mode: 'poll' });
    await repository.start(null);
    for (const refused of [repository.load('a'), repository.unload('a')]) {
      await expect(refused).rejects.toMatchObject({
        message: 'explicit model load / unload is not allowed if polling is enabled',
        kind: 'unavailable',
      });
    }
    folder.models.delete('a');
    folder.models.set('c', { stamp: '1', versions: ['1'] });
    folder.models.get('b')!.stamp = '2';
    await repository.poll();
    expect(repository.loaded().map(({ config }) => config.name)).toEqual(['b', 'c']);
    expect(folder.started).toBe(4);
    folder.models.set('c', { stamp: '2', versions: ['1'], problem: 'broken' });
    await repository.poll();
    await repository.poll();
    expect(errors.map(({ message }) => message)).toEqual(["failed to load 'c', broken"]);
    expect(repository.isReady('c', '')).toBe(true);
    expect(await repository.index({ readyOnly: false })).toEqual([
      { name: 'b', version: '1', state: 'READY' },
      { name: 'c', version: '1', state: 'READY', reason: 'could not be loaded again: broken' },
    ]);
  });

  it('are neither polled nor changed by clients in the mode none, which says how they may', async () => {
    const { repository } = open(folderWith('a'), { mode: 'none' });
    await repository.start(null);
    for (const refused of [repository.load('a'), repository.unload('a')]) {
      await expect(refused).rejects.toThrow(
        'explicit model load / unload is not allowed if polling is enabled, nor with --model-control-mode none: explicit is expected',
      );
    }
    expect(repository.isReady('a', '')).toBe(true);
  });

  it('name every model that cannot be loaded at the start, and load the others', async () => {
    const folder = folderWith('good');
    for (const name of ['bad', 'worse']) {
      folder.models.set(name, { stamp: '1', versions: ['1'], problem: `${name} is broken` });
    }
    const { repository } = open(folder, { mode: 'none' });
    await expect(repository.start(null)).rejects.toThrow(
      "failed to load 'bad', bad is broken\nfailed to load 'worse', worse is broken",
    );
    expect(repository.isReady('good', '')).toBe(true);
  });
});

it('comes to no harm by commands in any number and order', async () => {
  const command = fc.record({
    kind: fc.constantFrom('load', 'unload', 'values', 'more', 'change', 'break', 'mend', 'pause'),
    name: fc.constantFrom('a', 'b'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 40 }), async (commands) => {
      const folder = folderWith('a', 'b');
      const { repository } = open(folder);
      const ends: Promise<unknown>[] = [];
      const note = (end: Promise<unknown>) => void ends.push(end.catch(() => {})); // a load may fail
      let stamp = 1;
      for (const { kind, name } of commands) {
        const model = folder.models.get(name)!;
        if (kind === 'load') note(repository.load(name));
        if (kind === 'unload') note(repository.unload(name));
        if (kind === 'values') note(repository.load(name, { values: { size: 1 } }));
        if (kind === 'more') note(repository.load(name, { share: false }));
        if (kind === 'change') model.stamp = String(++stamp);
        if (kind === 'break') model.problem = 'broken';
        if (kind === 'mend') delete model.problem;
        if (kind === 'pause') await sleep(2);
      }
      await Promise.all(ends);
      for (const name of ['a', 'b']) delete folder.models.get(name)!.problem;
      // Whatever came before: a load loads, and what answers is one version of one start.
      await repository.load('a');
      await repository.unload('b').catch(() => {});
      expect(repository.isReady('a', '1')).toBe(true);
      expect(repository.isReady('b', '')).toBe(false);
      await expect.poll(() => folder.running.size, { interval: 1 }).toBe(repository.loaded().length);
      expect(folder.found.size).toBe(folder.running.size);
      await repository.close({ abort: true });
      expect(folder.running.size).toBe(0);
      expect(folder.closed).toBe(folder.started);
    }),
    { numRuns: 60 },
  );
});

describe('a model that the server brings by itself', () => {
  it('comes and goes whatever clients may change, and leaves no name behind', async () => {
    const folder = new FakeFolder();
    folder.models.set('x', { stamp: '1', versions: ['1'] });
    const repository = new ServingRepository({
      mode: 'none',
      listener: { added: () => {}, removed: () => {} },
      onError: () => {},
      drainMs: 1000,
    });
    for (let round = 0; round < 2; round++) {
      await repository.bring('x', folder.source('x'));
      expect(repository.isReady('x', '')).toBe(true);
      await repository.takeAway('x');
      expect(repository.rows()).toEqual([]);
      expect(folder.running.size).toBe(0);
    }
    await repository.takeAway('x');
    await expect(repository.bring('y', folder.source('y'))).rejects.toThrow(
      "failed to load 'y', its folder is gone",
    );
    expect(repository.rows()).toEqual([]);
    await repository.close({});
  });

  it('takes no name of another', async () => {
    const folder = new FakeFolder();
    folder.models.set('x', { stamp: '1', versions: ['1'] });
    const repository = new ServingRepository({
      mode: 'explicit',
      scan: folder.scan,
      listener: { added: () => {}, removed: () => {} },
      onError: () => {},
      drainMs: 1000,
    });
    await repository.load('x');
    await expect(repository.bring('x', folder.source('x'))).rejects.toThrow("There is a model 'x' already.");
    await repository.takeAway('x');
    expect(repository.isReady('x', '')).toBe(true);
    await repository.close({});
  });
});
