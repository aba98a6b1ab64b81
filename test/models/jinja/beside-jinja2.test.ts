import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseWritten, writtenJson } from '../../../base/written-json.js';
import { testPython } from '../../src/support/test-python.js';
import { templatesFolder } from '../../support/published-templates.js';
import { draws } from '../../support/scale.js';
import { templates, VARIABLES } from './generated-templates.js';
import { isAsJudged, judged } from './judge.js';

/** Published templates that are not as in Jinja2, with the reason. */
const DIFFERENT: Readonly<Record<string, string>> = {
  'llama-cpp--meetkai-functionary-medium-v3.1':
    'adds texts to one that went through `safe`, whereupon Jinja2 escapes them as HTML; its makers do not render it so',
};

describe.skipIf(testPython === null)('generated templates', () => {
  it('are as in Jinja2', () => {
    const sources = fc.sample(templates, draws(500));
    const wanted = judged(JSON.stringify({ templates: sources, conversations: [{}], variables: VARIABLES }));
    const results = wanted.map((one) => (Array.isArray(one) ? one[0]! : one));
    // Jinja2 writes addresses of objects, and bounds what a sandbox may not.
    const differing = sources.filter((source, i) => {
      const result = results[i]!;
      return !('text' in result && / at 0x/.test(result.text)) && !isAsJudged(source, VARIABLES, result);
    });
    expect(differing.toSorted((a, b) => a.length - b.length).slice(0, 5)).toEqual([]);
    expect(results.filter((result) => 'text' in result).length).toBeGreaterThan(sources.length * 0.6);
  });
});

describe.skipIf(testPython === null || templatesFolder === null)('published templates', () => {
  const fixture = readFileSync(
    new URL('../../fixtures/templates/conversations.json', import.meta.url),
    'utf8',
  );
  const conversations = parseWritten(fixture) as { name: string; variables: Record<string, unknown> }[];
  const common = { documents: null, bos_token: '<s>', eos_token: '</s>' };
  const names =
    templatesFolder === null ? [] : readdirSync(templatesFolder).filter((name) => name.endsWith('.jinja'));

  function differingOf(some: readonly string[], given: typeof conversations): string[] {
    const sources = some.map((name) => readFileSync(join(templatesFolder!, name), 'utf8'));
    // Written as they are in the file: JSON.stringify would make 1 of 1.0.
    const written = writtenJson(given.map(({ variables }) => variables));
    const jobs = `{"templates": ${JSON.stringify(sources)}, "conversations": ${written}, "variables": ${JSON.stringify(common)}}`;
    return judged(jobs).flatMap((results, i) => {
      const isSame = given.every(({ variables }, k) =>
        isAsJudged(sources[i]!, { ...common, ...variables }, Array.isArray(results) ? results[k]! : results),
      );
      return isSame ? [] : [some[i]!.replace('.jinja', '')];
    });
  }

  it('are as in Jinja2 with conversations of every kind, or named here with the reason', () => {
    // Templates of one family lie side by side: each is given every third conversation, its neighbours the others.
    const parts = draws(1) > 1 ? 1 : 3;
    const differing = Array.from({ length: parts }, (_, part) => {
      const isOfPart = (_: unknown, i: number) => i % parts === part;
      return differingOf(names.filter(isOfPart), conversations.filter(isOfPart));
    }).flat();
    expect(names.length).toBeGreaterThan(200);
    expect(differing).toEqual(Object.keys(DIFFERENT));
  });
});
