// Stands for 'vitest' in tests that run without Vite: Vitest's runner and its expect, without the parts that
// need a server.
import * as expects from '@vitest/expect';
import * as spies from '@vitest/spy';
import * as chai from 'chai';

export {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  it,
  onTestFinished,
  suite,
  test,
} from '@vitest/runner';

chai.use(expects.JestExtend);
chai.use(expects.JestChaiExpect);
chai.use(expects.JestAsymmetricMatchers);

type Expect = (value: unknown, message?: string) => Chai.Assertion;
const plain: Expect = (value, message) => chai.expect(value, message);
export const expect = Object.assign(plain, chai.expect, {
  ...expects.customMatchers,
  ...Reflect.get(globalThis, expects.ASYMMETRIC_MATCHERS_OBJECT),
});
Object.defineProperty(globalThis, expects.GLOBAL_EXPECT, {
  value: expect,
  writable: true,
  configurable: true,
});
expects.setState({ assertionCalls: 0, isExpectingAssertions: false, environment: 'node' }, expect as never);

const surroundings = new Map<string, string | undefined>();

/** Of Vitest's helpers those that tests of the native executor use. */
export const vi = {
  fn: spies.fn,
  spyOn: spies.spyOn,
  stubEnv(name: string, value: string | undefined): void {
    if (!surroundings.has(name)) surroundings.set(name, process.env[name]);
    setVariable(name, value);
  },
  unstubAllEnvs(): void {
    for (const [name, value] of surroundings) setVariable(name, value);
    surroundings.clear();
  },
};

function setVariable(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}
