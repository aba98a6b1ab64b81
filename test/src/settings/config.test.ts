import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadingOptions } from '../../../src/commands/loading-options.js';
import { loadConfig, UsageError } from '../../../src/settings/config.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const folder = temporaryFolder('skein-config');

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

describe('loadConfig', () => {
  it('takes flag over environment over file over default', () => {
    const path = file('precedence.yaml', 'model: from-file\nport: 1\nmaxBatchRequests: 2\nhost: file-host\n');
    const environment = {
      SKEIN_PORT: '3',
      SKEIN_MAX_BATCH_REQUESTS: '4',
      SKEIN_CONFIG: '/nowhere-because-the-flag-wins',
    };
    const config = loadConfig({ flags: { port: '5' }, environment, file: path });
    expect(config).toMatchObject({
      models: [{ name: 'from-file', aliases: [], model: 'from-file', options: {}, adapters: {} }],
      host: 'file-host',
      port: 5,
      maxBatchRequests: 4,
      maxQueuedRequests: 256,
    });
  });

  it('has the model that comes with the package where none is named', () => {
    const path = expect.stringMatching(/models\/demo\/gosling$/);
    expect(loadConfig({}).models).toEqual([
      { name: 'gosling', aliases: [], model: path, options: {}, adapters: {} },
    ]);
  });

  it('reads JSON and YAML, option names and flag names, and the path from SKEIN_CONFIG', () => {
    const json = file('config.json', '{"model": "m", "max-queued-requests": 7, "chunkedPrefill": false}');
    const config = loadConfig({ environment: { SKEIN_CONFIG: json } });
    expect(config).toMatchObject({ models: [{ model: 'm' }], maxQueuedRequests: 7, chunkedPrefill: false });
  });

  it('reads switches and numbers from text', () => {
    const environment = { SKEIN_MODEL: 'm', SKEIN_CHUNKED_PREFILL: 'off' };
    const flags = { memoryFraction: '0.5' };
    expect(loadConfig({ environment, flags })).toMatchObject({
      chunkedPrefill: false,
      memoryFraction: 0.5,
    });
  });

  it('reads sizes with their units, where bytes are asked for', () => {
    const config = file('sizes.json', '{"model": "m", "maxBodyBytes": "2 MiB", "maxFileBytes": 7}');
    const environment = { SKEIN_CONFIG: config, SKEIN_MAX_FILES_BYTES: '1.5GB' };
    const flags = { modelsDir: 'models', modelMemoryBytes: '1gb' };
    expect(loadConfig({ environment, flags })).toMatchObject({
      ...{ maxBodyBytes: 2 * 2 ** 20, maxFileBytes: 7, maxFilesBytes: 1.5e9, modelMemoryBytes: 1e9 },
    });
    for (const value of ['1G', '1 XB', 'GB', '-1GB', '1e3GB', '0.0000001KB'])
      expect(() => loadConfig({ flags: { ...flags, modelMemoryBytes: value } })).toThrow(
        /whole number .*, or a size with its unit such as 1\.5GB or 512MiB\.$/,
      );
    expect(() => loadConfig({ flags: { model: 'm', port: '1KB' } })).toThrow(/--port is "1KB"/);
  });

  it('takes an empty variable as not set', () => {
    expect(loadConfig({ environment: { SKEIN_MODEL: 'm', SKEIN_PORT: '' } }).port).toBe(8000);
  });

  const wrong: [string, () => unknown, string | RegExp][] = [
    [
      'a number beyond all',
      () => loadConfig({ flags: { model: 'm', kvCacheTokens: '1e400' } }),
      /--kv-cache-tokens is Infinity; it must be a whole number of at least 1 and at most 2147483647\./,
    ],
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
      /unknown option modle; did you mean model\?$/,
    ],
    [
      'a value of the wrong type in a file',
      () => loadConfig({ file: file('type.yaml', 'model: [1]') }),
      /model in .*type\.yaml is \[1\]; it must be a path, or NAME=PATH/,
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

describe('models', () => {
  const names = (config: ReturnType<typeof loadConfig>) =>
    config.models.map(({ name, model, aliases }) => [name, model, ...aliases]);

  it('are one or several flags, a list in the variable, and one or several in a file', () => {
    const flags = { model: ['chat=/a/smollm2', './b=c/code.gguf', '/d/last'] };
    const expected = [
      ['chat', '/a/smollm2'],
      ['code', './b=c/code.gguf'],
      ['last', '/d/last'],
    ];
    expect(names(loadConfig({ flags }))).toEqual(expected);
    expect(names(loadConfig({ environment: { SKEIN_MODEL: flags.model.join(', ') } }))).toEqual(expected);
    expect(names(loadConfig({ file: file('models.json', JSON.stringify(flags)) }))).toEqual(expected);
    expect(names(loadConfig({ flags: { model: 'org/name=/a' } }))).toEqual([['org/name', '/a']]);
  });

  it('have options and aliases of their own in a file, where a flag still names all there are', () => {
    const path = file(
      'own.yaml',
      'kvCacheTokens: 100\nmodels:\n  - { name: chat, model: /a, aliases: [gpt-4], weights: int8, kv-cache-tokens: 50 }\n  - model: /b/code\n',
    );
    const config = loadConfig({ file: path });
    expect(config.kvCacheTokens).toBe(100);
    expect(config.models).toEqual([
      {
        name: 'chat',
        model: '/a',
        aliases: ['gpt-4'],
        options: { weights: 'int8', kvCacheTokens: 50 },
        adapters: {},
      },
      { name: 'code', model: '/b/code', aliases: [], options: {}, adapters: {} },
    ]);
    expect(names(loadConfig({ file: path, flags: { model: '/c' } }))).toEqual([['c', '/c']]);
  });

  it('have LoRA adapters by name, of the command line, a variable or their own entry', () => {
    const adaptersOf = (sources: Parameters<typeof loadConfig>[0]) =>
      loadConfig(sources).models.map(({ adapters }) => adapters);
    expect(adaptersOf({ flags: { model: '/m', lora: ['a=/x', './y-lora'] } })).toEqual([
      { a: '/x', 'y-lora': './y-lora' },
    ]);
    const environment = { SKEIN_MODEL: '/m', SKEIN_LORA: 'a=/x, b=/y' };
    expect(adaptersOf({ environment })).toEqual([{ a: '/x', b: '/y' }]);
    const [one, list] = ['{"name": "a", "path": "/x"}', '[{"name": "a", "path": "/x"}, "b=/y"]'];
    expect(adaptersOf({ environment: { ...environment, SKEIN_LORA: one } })).toEqual([{ a: '/x' }]);
    expect(adaptersOf({ environment: { ...environment, SKEIN_LORA: list } })).toEqual([{ a: '/x', b: '/y' }]);
    const json = '{"name": "c", "path": "/z", "base_model_name": "two"}';
    const path = file(
      'adapters.yaml',
      `models:\n  - { name: one, model: /a, aliases: [uno], lora: a=/x }\n  - { name: two, model: /b, lora-modules: [b=/y] }\nlora: '${json}'\n`,
    );
    expect(adaptersOf({ file: path })).toEqual([{ a: '/x' }, { b: '/y', c: '/z' }]);
    const byAlias = json.replace('two', 'uno');
    expect(adaptersOf({ file: path, flags: { lora: [byAlias] } })).toEqual([
      { a: '/x', c: '/z' },
      { b: '/y' },
    ]);
    const twice = { file: path, flags: { lora: [json.replace('"c"', '"a"')] } };
    expect(() => adaptersOf(twice)).toThrow('The name a is given twice: to /x and to /z');
  });

  it('have adapters as objects in a file too', () => {
    const adaptersOf = (name: string, text: string) =>
      loadConfig({ file: file(name, text) }).models.map(({ adapters }) => adapters);
    const expected = [{ sql: './x', poet: './y' }];
    expect(adaptersOf('a.yaml', 'model: /m\nlora: { sql: ./x, poet: ./y }\n')).toEqual(expected);
    const list = 'models:\n  - model: /m\n    lora:\n      - { name: sql, path: ./x }\n      - poet=./y\n';
    expect(adaptersOf('b.yaml', list)).toEqual(expected);
    const of = (base: string) =>
      `models:\n  - name: m\n    model: /m\n    lora: [{ name: sql, path: ./x, base_model_name: ${base} }]\n`;
    expect(() => adaptersOf('e.yaml', of('chat'))).toThrow(
      "the adapter 'sql' names 'chat' as its base; in the entry of 'm' it can be of that model alone.",
    );
    expect(adaptersOf('f.yaml', of('m'))).toEqual([{ sql: './x' }]);
    expect(() => adaptersOf('c.yaml', 'model: /m\nlora: { sql: 5 }\n')).toThrow('lora in ');
    expect(() => adaptersOf('d.yaml', 'model: /m\nlora: 5\n')).toThrow('lora in ');
  });

  it("have adapters in vLLM's form, whose base may be any name where there is one model", () => {
    const adaptersOf = (value: object, ...models: string[]) =>
      loadConfig({ flags: { model: models, lora: [JSON.stringify(value)] } }).models.map(
        ({ adapters }) => adapters,
      );
    const sql = { name: 'sql', path: './x' };
    const expected = [{ sql: './x' }];
    for (const base_model_name of [null, '', 'chat', 'HuggingFaceTB/SmolLM2-135M-Instruct']) {
      expect(adaptersOf({ ...sql, base_model_name }, 'chat=/m')).toEqual(expected);
    }
    expect(adaptersOf({ ...sql, is_3d_lora_weight: false }, 'chat=/m')).toEqual(expected);
    expect(() => adaptersOf({ ...sql, base_model_name: 'nope' }, 'a=/m', 'b=/n')).toThrow(
      '--lora: the adapter sql is said to be one of nope; the models are a, b.',
    );
  });

  it.each([
    [
      '{"name": "a"',
      /^--lora begins as JSON does and is none: .*\. NAME=PATH is expected, or an object such as \{/,
    ],
    ['{"name": "a", "pth": "x"}', '--lora has an unknown key "pth" in its JSON; did you mean path?'],
    [
      '{"name": "a", "else": 1}',
      '"else" in its JSON; keys are name, path, base_model_name, is_3d_lora_weight.',
    ],
    ['{"name": "a"}', '--lora has no "path" in its JSON; an object is expected such as {"name": "sql"'],
    ['{"name": 5, "path": "x"}', '--lora has 5 as "name" in its JSON; an object is expected'],
    ['{"name": "a", "path": "x", "base_model_name": 5}', '--lora has 5 as "base_model_name" in its JSON'],
    [
      '{"name": "a", "path": "x", "is_3d_lora_weight": true}',
      '--lora: is_3d_lora_weight is true; adapters of',
    ],
    [
      'a,b=/x',
      '--lora: "a,b" can be no name of an adapter; a text of 1 to 200 characters that can be seen, without',
    ],
    ['', '--lora is ""; it must be NAME=PATH, or a list of these.'],
  ])('refuse an adapter that is given as %s', (text, why) => {
    expect(() => loadConfig({ flags: { model: ['/m'], lora: [text] } })).toThrow(UsageError);
    expect(() => loadConfig({ flags: { model: ['/m'], lora: [text] } })).toThrow(why);
  });

  it('may take adapters or not, whatever is given to others', () => {
    const config = (content: string) => loadConfig({ file: file('takes.yaml', content) });
    const atRunTime = 'allowRuntimeLora: true\nloraDir: /\n';
    const two = (one: string, other: string) =>
      `models:\n  - { name: a, model: /a${one} }\n  - { name: b, model: /b${other} }\n`;
    const takes = (content: string) => {
      const { models, ...rest } = config(content);
      return models.map((model) => loadingOptions(model, { models, ...rest }).adapters);
    };
    expect(takes('model: /a')).toEqual([undefined]);
    expect(takes('model: /a\nenable-lora: true')).toEqual([{}]);
    expect(takes(two(', lora: { s: /s }', ''))).toEqual([{ s: '/s' }, undefined]);
    expect(takes(two('', ', enableLora: false') + atRunTime)).toEqual([{}, undefined]);
    expect(takes(`${two(', enableLora: true', '')}enableLora: false\n${atRunTime}`)).toEqual([{}, undefined]);
    expect(() => takes('model: m=/a\nenableLora: false\nlora: s=/s')).toThrow(
      'The model m takes no LoRA adapters (enable-lora is false), and is given s; leave one of them out.',
    );
    expect(() => config(`model: /a\nenableLora: false\n${atRunTime}`)).toThrow(
      '--allow-runtime-lora does nothing where no model takes adapters (enable-lora is false).',
    );
  });

  it('go by --served-model-name and further names, where there is one', () => {
    const flags = { model: '/a/smollm2', servedModelName: ['chat', 'gpt-4'] };
    expect(names(loadConfig({ flags }))).toEqual([['chat', '/a/smollm2', 'gpt-4']]);
  });

  const own = (entry: string) => () => loadConfig({ file: file('wrong.yaml', `models: [${entry}]`) });
  const wrong: [string, () => unknown, string | RegExp][] = [
    [
      'two of one name',
      () => loadConfig({ flags: { model: ['/a/x', '/b/x'] } }),
      /name x is given twice: to \/a\/x and to \/b\/x/,
    ],
    ['an alias that is a name', own('{model: a}, {model: b, aliases: [a]}'), /name a is given twice/],
    [
      'an empty name',
      () => loadConfig({ flags: { model: '=/a' } }),
      /--model is "=\/a", which has an empty name/,
    ],
    [
      'an empty path',
      () => loadConfig({ environment: { SKEIN_MODEL: 'a=' } }),
      /SKEIN_MODEL is "a=", which has no path/,
    ],
    [
      'no models',
      () => loadConfig({ file: file('wrong.yaml', 'models: []') }),
      /models in .* must be a list of models/,
    ],
    ['an entry that is none', own('a'), /entry 1 of models in .*wrong\.yaml must be an object/],
    ['an entry without a path', own('{name: a}'), /model of entry 1 of models in .* must be the path/],
    [
      'a path by a wrong name',
      own('{name: chat, modle: x}'),
      /entry 1 of models in .*wrong\.yaml has an unknown field modle; did you mean model\?$/,
    ],
    [
      'an option that none is near',
      own('{model: a, loraDtype: x, foobarbaz: 1}'),
      /entry 1 of .* has an unknown field loraDtype; (did you mean lora\w*\?|there are lora.*)$/,
    ],
    [
      'an option of the server',
      own('{model: a, port: 3}'),
      /entry 1 of .* has port, which is an option of the server, and of no single model\.$/,
    ],
    [
      'a value of the wrong type',
      own('{model: a, weights: int3}'),
      /weights of entry 1 of models in .* is "int3"; it must be one of/,
    ],
    [
      'model beside models',
      () => loadConfig({ file: file('wrong.yaml', 'model: a\nmodels: [{model: b}]') }),
      /both model and models/,
    ],
    [
      'one place for the ranks of two models',
      () => loadConfig({ flags: { model: ['a=/a', 'b=/b'], ranksAddress: '10.0.0.1:7000' } }),
      '--ranks-address 10.0.0.1:7000 is of both models a and b, and only one group of ranks can meet there; give each model its own in an entry of models in a --config file.',
    ],
    [
      'the same in a file',
      () =>
        loadConfig({
          file: file(
            'ranks.yaml',
            'ranksAddress: /run/r\nmodels: [{model: /a}, {model: /b, ranksAddress: /run/b}, {model: /c, ranksAddress: /run/r}]',
          ),
        }),
      '--ranks-address /run/r is of both models a and c',
    ],
    [
      'one place for the ranks of models on demand',
      () => loadConfig({ flags: { modelsDir: '/models', ranksAddress: '/run/r' } }),
      '--ranks-address is of one model, but each of --models-dir would take it',
    ],
    [
      'one place for the ranks of a repository',
      () => loadConfig({ flags: { model: ['a'], modelRepository: ['/models'], ranksAddress: '/run/r' } }),
      '--ranks-address is of one model, but each of --model-repository would take it; give it to a model in an entry of models in a --config file, or in the parameters of its config.pbtxt.',
    ],
    [
      'copies of a resource without the rate limiter',
      () => loadConfig({ flags: { modelRepository: ['/models'], rateLimitResource: ['R:1'] } }),
      '--rate-limit-resource needs --rate-limit execution_count: nothing is limited without it.',
    ],
    [
      'a resource without a count',
      () =>
        loadConfig({
          flags: { modelRepository: ['/models'], rateLimit: 'execution_count', rateLimitResource: ['R'] },
        }),
      '--rate-limit-resource is "R"; NAME:COUNT, or NAME:COUNT:0, is expected.',
    ],
    [
      'a resource of another device',
      () =>
        loadConfig({
          flags: { modelRepository: ['/models'], rateLimit: 'execution_count', rateLimitResource: ['R:1:1'] },
        }),
      '--rate-limit-resource is "R:1:1"; models run on the processor, which is device 0.',
    ],
    [
      'a resource twice',
      () =>
        loadConfig({
          flags: {
            modelRepository: ['/models'],
            rateLimit: 'execution_count',
            rateLimitResource: ['R:1', 'R:2:0'],
          },
        }),
      '--rate-limit-resource is "R:2:0"; \'R\' is given already.',
    ],
    [
      'too many copies of a resource',
      () =>
        loadConfig({
          flags: {
            modelRepository: ['/models'],
            rateLimit: 'execution_count',
            rateLimitResource: ['R:4294967296'],
          },
        }),
      'the count may be at most 4294967295.',
    ],
    [
      'a rate limiter without a repository',
      () => loadConfig({ flags: { model: ['a'], rateLimit: 'execution_count' } }),
      '--rate-limit execution_count needs --model-repository: it limits models of folders.',
    ],
    [
      'a place for ranks that is none',
      () => loadConfig({ flags: { model: ['a'], ranksAddress: 'here:99999' } }),
      '--ranks-address is "here:99999"; it must be a path with a /',
    ],
    [
      '--served-model-name for several',
      () => loadConfig({ flags: { model: ['a', 'b'], servedModelName: 'c' } }),
      /--served-model-name names the one model that has no name yet/,
    ],
  ];
  it.each(wrong)('are refused: %s', (_, load, message) => {
    expect(load).toThrow(UsageError);
    expect(load).toThrow(message);
  });
});
