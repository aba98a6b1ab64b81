import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { testPython } from '../../../src/support/test-python.js';

const path = (name: string) => fileURLToPath(new URL(`../../../fixtures/schemas/${name}`, import.meta.url));

it.skipIf(testPython === null)('pydantic.json is what pydantic makes of pydantic-models.py', () => {
  const made = execFileSync(testPython!, [path('pydantic-models.py')], { encoding: 'utf8' });
  expect(JSON.parse(made)).toEqual(JSON.parse(readFileSync(path('pydantic.json'), 'utf8')));
});
