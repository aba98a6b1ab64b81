// Entry point of the addon: the functions that JavaScript sees.
#include <napi.h>

#include "convert/register-convert.h"
#include "executor/executor_object.h"
#include "executor/js_group.h"
#include "executor/js_test_hooks.h"
#include "kernels/test_hooks.h"

// Number of the interface between the addon and JavaScript, which grows with every change of it: ADDON_ABI in
// engine/executors/native/load-addon.ts is the same number. An addon compiled from older sources is refused on load instead of
// misreading its arguments.
static constexpr int kAddonAbi = 43;

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("abi", kAddonAbi);
  exports.Set("kernels", skein::kernelTestHooks(env));
  skein::registerConvert(env, exports);
  skein::registerExecutor(env, exports);
  skein::registerExecutorTestHooks(env, exports);
  skein::registerGroup(env, exports);
  return exports;
}

NODE_API_MODULE(skein, Init)
