import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Log } from '../../../../src/server/logs/log.js';
import { LogOutput } from '../../../../src/server/logs/log-output.js';
import { textLines } from '../../../../src/server/logs/text-lines.js';
import { draws } from '../../../support/scale.js';

/** A log for people, and what it has written. */
function textLog() {
  const written: string[] = [];
  const output = new LogOutput();
  const stream = textLines({ write: (text) => written.push(text) });
  return { log: new Log('trace', Object.assign(output, { stream })), written };
}

describe('lines of text', () => {
  it('begin with time, level and message, and name each field', () => {
    const { log, written } = textLog();
    log.info({ path: '/v1/models', status: 200, isWhole: true, key: '', names: ['a b'] }, 'request');
    log.warn({ fields: 'x "y"' }, 'unknown fields');
    expect(written.map((line) => line.replace(/^\S+Z /, ''))).toEqual([
      'INFO request path=/v1/models status=200 isWhole=true key="" names=["a b"]\n',
      'WARN unknown fields fields="x \\"y\\""\n',
    ]);
    expect(written[0]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO /);
  });

  it('have the stack of an error behind them, each line of it indented', () => {
    const { log, written } = textLog();
    log.error({ err: new Error('no luck\nINFO all is well'), requestId: 'r1' }, 'request failed');
    const [head, ...stack] = written[0]!.split('\n').slice(0, -1);
    expect(head).toMatch(/ ERROR request failed requestId=r1 error="no luck\\nINFO all is well"/);
    expect(stack.length).toBeGreaterThan(2);
    for (const line of stack) expect(line).toMatch(/^ {4}\S/);
  });

  it('are never ended, or given colours, by what a client sent', () => {
    const { log, written } = textLog();
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (path, message) => {
        written.length = 0;
        log.info({ path: `\x1b[2J\n${path}` }, message);
        expect(written).toHaveLength(1);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
        expect(written[0]!.slice(0, -1)).not.toMatch(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/);
      }),
      { numRuns: draws(80) },
    );
  });
});
