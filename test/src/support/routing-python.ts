import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { testPython } from './test-python.js';

const path =
  process.env.SKEIN_TEST_ROUTING_PYTHON ||
  (testPython === null ? '' : join(dirname(dirname(testPython)), 'routing/bin/python'));

/**
 * A Python with test/requirements-routing.txt: SKEIN_TEST_ROUTING_PYTHON, or that of the folder `routing` of the environment of
 * `testPython`.
 */
export const routingPython: string | null = existsSync(path) ? path : null;

if (routingPython === null && process.env.CI === 'true') {
  throw new Error(`The tests of routers and of Dynamo need ${path}; see .ci/run.`);
}

/** A program that pip has put next to that Python. */
export const routingProgram = (name: string): string => join(dirname(path), name);
