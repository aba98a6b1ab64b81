import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { testPython } from '../../src/support/test-python.js';
import { outcome } from './render.js';

const script = fileURLToPath(new URL('../../../tools/reference/templates/render.py', import.meta.url));

export type Judged = { text: string } | { error: string; message: string };

/** What Jinja2 makes of templates, each with each conversation. @param json the jobs of render.py */
export function judged(json: string): (Judged[] | Judged)[] {
  const found = execFileSync(testPython!, [script], { input: json, maxBuffer: 2 ** 30 });
  return JSON.parse(found.toString()) as (Judged[] | Judged)[];
}

/** True where a template is as in Jinja2: the same text, or an error of the same kind. */
export function isAsJudged(source: string, variables: Record<string, unknown>, wanted: Judged): boolean {
  const found = outcome(source, variables);
  return 'text' in wanted ? found === wanted.text : found.slice(0, found.indexOf(':')) === wanted.error;
}
