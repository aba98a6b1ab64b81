import { bundleTests } from '/work/wt/arm/tools/arm/bundle.ts';
const { script, tests } = await bundleTests(process.argv.slice(2));
console.log(script, tests.join(' '));
