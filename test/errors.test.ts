import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import * as loadgen from '../loadgen/index.js';
import * as skein from '../src/index.js';
import { readDocument, repository } from './support/documents.js';

const ROOMS = [
  'base',
  'callbacks',
  'engine',
  'host',
  'cluster',
  'kvcache',
  'loadgen',
  'models',
  'network',
  'scheduler',
  'src',
];
const sources = ROOMS.flatMap((room) =>
  readdirSync(join(repository, room), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `${room}/${path}`),
).toSorted();

interface ErrorClass {
  name: string;
  parent: string;
  code: string | null;
  named: string | null;
}

/** Classes of errors, by what they extend. */
const classes = sources.flatMap((path): ErrorClass[] => {
  const source = readFileSync(`${repository}/${path}`, 'utf8');
  const found = source.matchAll(
    /^(?:export )?(?:abstract )?class (\w+)(?:<\w+>)? extends (\w+) \{([\s\S]*?)^\}/gm,
  );
  return Array.from(found, ([, name, parent, body]) => ({
    name: name!,
    parent: parent!,
    code: /^ {2}override readonly code(?::[^=]+)? = '(\w+)';$/m.exec(body!)?.[1] ?? null,
    named: /^ {2}override name = '(\w+)';$/m.exec(body!)?.[1] ?? null,
  })).filter(({ name, parent }) => /Error$/.test(parent) || /Error$/.test(name));
});
const own = classes.filter(({ name }) => name !== 'SkeinError');

const rows = Array.from(
  readDocument('docs/errors.md').matchAll(
    /^\| `(SKEIN_\w+)` \| `(\w+)` \| (?:`(skein(?:\/loadgen)?)`)? ?\|/gm,
  ),
  ([, code, name, from]) => ({ code: code!, name: name!, from: from ?? null }),
);

describe('classes of errors', () => {
  it('all extend SkeinError, which alone extends Error', () => {
    expect(own.length).toBeGreaterThan(40);
    expect(classes.filter(({ parent }) => parent === 'Error').map(({ name }) => name)).toEqual([
      'SkeinError',
    ]);
    const known = new Set(classes.map(({ name }) => name));
    expect(own.filter(({ parent }) => !known.has(parent))).toEqual([]);
  });

  it('have a code each, which no other has, and their own name', () => {
    expect(own.filter(({ code }) => !/^SKEIN_[A-Z_]+$/.test(code ?? ''))).toEqual([]);
    expect(new Set(own.map(({ code }) => code)).size).toBe(own.length);
    // An error that a job throws in a helper thread keeps the name that it had there.
    expect(own.filter(({ name, named }) => named !== name).map(({ name }) => name)).toEqual(['HelperError']);
  });

  it('are those of docs/errors.md, in the order of their codes', () => {
    const listed = rows.map(({ code, name }) => `${code} ${name}`);
    expect(listed).toEqual(own.map(({ code, name }) => `${code} ${name}`).toSorted());
  });

  it('can be imported from where docs/errors.md says, and from nowhere else', () => {
    for (const { name, from } of rows) {
      const exporters = Object.entries({ skein, 'skein/loadgen': loadgen }).filter(([, all]) => name in all);
      expect(
        exporters.map(([door]) => door),
        name,
      ).toEqual(from === null ? [] : [from]);
    }
  });
});

/**
 * Files that do read sentences of errors: foreign ones, which have no codes. They come from Node.js and V8, the compiled
 * addon and libtensorflow, zod, commander and the template library.
 */
const READERS_OF_FOREIGN_SENTENCES = [
  'engine/executors/native/load-addon.ts',
  'engine/executors/tensorflow/device-problem.ts',
  'engine/executors/tensorflow/load-tensorflow.ts',
  'models/chat-template.ts',
  'models/images/decode-picture.ts', // sharp's, of a decoder that took too long
  'models/repository/read-model-config.ts', // protobufjs puts the line after its sentence
  'src/commands/info.ts', // the sentence of a reader of files has the path of a folder that is gone
  'src/commands/usage-message.ts',
  'src/schemas/validated.ts',
  'src/server/web/bodies/read-form.ts', // busboy's
  'src/serving/ensembles/ensemble-errors.ts', // a member's own sentence may name it
  'src/serving/model-load-error.ts', // the sentence of a reader of files has its path
  'src/serving/repository/uploaded-model.ts', // the sentence of a reader of files has the server's path
  'src/settings/parse-yaml.ts',
];

const ERROR = String.raw`(?:\w*[eE]rror|err|errMsg|reason|problem|failure|refusal|cause|issue|thrown)`;
const SENTENCE = String.raw`(?:(?:\(?\b${ERROR}(?: as \w+)?\)?)[!?]?\.(?:message|text)|messageOf\(\w+\)|\w+Problem\(\w+\)|\b(?:errMsg|message))`;
const READ = new RegExp(
  String.raw`${SENTENCE}[!?]?\.(?:match(?:All)?|includes|startsWith|endsWith|replace(?:All)?|search|split|indexOf|slice)\(` +
    String.raw`|\.(?:test|exec)\(\s*${SENTENCE}\)`,
);

/** Parts of a file that read an error's sentence, but for what only makes it shorter. */
function readsOf(source: string): string[] {
  return source
    .split('\n')
    .filter((line) => READ.test(line) && !/^\s*(\*|\/\/)/.test(line))
    .filter((line) => !/\.slice\(0, \d+\)/.test(line))
    .map((line) => line.trim());
}

describe('sentences of errors', () => {
  it('are read by nobody but for foreign ones, in the files that are named here', () => {
    const found = sources.filter((path) => readsOf(readFileSync(`${repository}/${path}`, 'utf8')).length > 0);
    // A message of a chat is another thing.
    const chats = ['src/chat/chat-commands.ts', 'src/commands/chat.ts'];
    expect(found.filter((path) => !chats.includes(path))).toEqual(READERS_OF_FOREIGN_SENTENCES);
  });

  it.each([
    'if (error.message.startsWith("The guide")) return null;',
    'const [written] = /^\\w*/.exec(error.message)!;',
    "return message.replace(PATTERN, '--');",
    "const why = writeProblem(error).split(';', 1)[0];",
    'if (DAMAGED.test((error as Error).message)) end();',
    'const isInvalid = messageOf(error).includes("is refused");',
  ])('would be found where they were (the check itself): %s', (line) => {
    expect(readsOf(line)).toHaveLength(1);
  });
});
