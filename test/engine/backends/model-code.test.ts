import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { ModelCode } from '../../../engine/backends/model-code.js';
import { boundedError, thrownText } from '../../../engine/backends/thrown.js';

const root = mkdtempSync(join(tmpdir(), 'skein model code-'));
const directory = join(root, 'squares');
const versionDirectory = join(directory, '1');
mkdirSync(versionDirectory, { recursive: true });
symlinkSync(directory, join(root, 'linked'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const code = new ModelCode({ directory, versionDirectory, version: '1' });
const url = (path: string) => pathToFileURL(join(directory, path)).href;
const thrownAt = (message: string, ...frames: string[]) =>
  Object.assign(new Error(message), {
    stack: `Error: ${message}\n${frames.map((one) => `    at ${one}`).join('\n')}`,
  });

describe('the place of an error', () => {
  it.each([
    ['a frame', [`work (${url('1/model.mjs')}:12:9)`], 'model.mjs:12:9'],
    ['a frame without a function', [`async ${url('1/lib/a b.mjs')}:3:1`], 'lib/a b.mjs:3:1'],
    ['a frame of a path', [`Object.<anonymous> (${directory}/1/model.js:1:7)`], 'model.js:1:7'],
    ['a file beside the version', [`f (${url('shared.mjs')}:2:2)`], 'shared.mjs:2:2'],
    [
      'a library of its own',
      [`g (${url('1/node_modules/x/i.js')}:1:1)`, `f (${url('1/model.mjs')}:5:5)`],
      'model.mjs:5:5',
    ],
    ['a library alone', [`g (${url('1/node_modules/x/i.js')}:1:1)`], 'node_modules/x/i.js:1:1'],
    [
      'a frame of Node.js first',
      ['JSON.parse (<anonymous>)', `f (${url('1/model.mjs')}:5:5)`],
      'model.mjs:5:5',
    ],
    ['others alone', ['JSON.parse (<anonymous>)', 'f (file:///srv/else/1/model.mjs:1:1)'], null],
  ])('is found: %s', (_, frames, place) => {
    expect(code.placeOf(thrownAt('no luck', ...frames))).toBe(place);
  });

  it('is not read out of the message', () => {
    const error = thrownAt(`why\n    at f (${url('1/fake.mjs')}:1:1)`, `f (${url('1/model.mjs')}:5:5)`);
    expect(code.placeOf(error)).toBe('model.mjs:5:5');
  });

  it('is found where the folder is a link', () => {
    const linked = join(root, 'linked');
    const other = new ModelCode({ directory: linked, versionDirectory: join(linked, '1'), version: '1' });
    expect(other.placeOf(thrownAt('no luck', `f (${url('1/model.mjs')}:5:5)`))).toBe('model.mjs:5:5');
    expect(other.withoutPaths(`no ${directory}/1/a, no ${linked}/b`)).toBe('no a, no b');
  });
});

describe('an error of code', () => {
  it('has no path of the server in its sentence, and frames and causes in its stack', () => {
    const thrown = thrownAt(`no ${url('1/a.bin')}`, `f (${url('1/model.mjs')}:5:5)`);
    thrown.cause = new Error('the disk');
    const { message, stack } = code.failure('execute threw', thrown);
    expect(message).toBe('execute threw at model.mjs:5:5: no a.bin');
    expect(stack).toContain(url('1/model.mjs'));
    expect(stack).toContain('caused by Error: the disk');
  });

  it('is bounded, whatever is thrown', () => {
    const anything = fc.oneof(
      fc.anything({ withNullPrototype: true, withTypedArray: true, withBigInt: true, withDate: true }),
      fc
        .record({ message: fc.anything(), stack: fc.anything(), name: fc.anything(), cause: fc.anything() })
        .map((fields) => Object.assign(new Error('e'), fields)),
      fc.nat(1e6).map((length) => new Error('x'.repeat(length), { cause: 'y'.repeat(length) })),
    );
    fc.assert(
      fc.property(anything, (thrown) => {
        for (const error of [
          code.failure('execute threw', thrown),
          code.uncaught(thrown),
          boundedError(thrown),
        ]) {
          expect(error.message.length).toBeLessThan(6000);
          expect(error.stack!.length).toBeLessThan(80_000);
          expect(() => structuredClone(error)).not.toThrow();
        }
        expect(thrownText(thrown).length).toBeLessThan(5000);
      }),
    );
  });
});
