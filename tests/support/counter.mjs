/* counter.mjs -- named tests in node, one after the other, and how many passed. */
export const counter = () => {
  let passed = 0, failed = 0;
  const test = async (name, body) => {
    const began = Date.now();
    try {
      await body();
      passed++;
      console.log(`ok: ${name}, ${Math.round((Date.now() - began) / 100) / 10} s`);
    } catch (error) {
      failed++;
      console.log(`FAILED: ${name}: ${error.message}`);
    }
  };
  const verdict = () => {
    console.log(`${passed} passed, ${failed} failed`);
    return failed ? 1 : 0;
  };
  return { test, verdict };
};
