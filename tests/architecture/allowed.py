"""Places that look like a violation and are none, each with its reason.

The key is the rule's name, then ``path:scope`` as a violation prints it. An entry that is no
longer needed fails the tests.
"""

from __future__ import annotations

ALLOWED: dict[str, dict[str, str]] = {
    "only_env_steps_data": {
        "state/carry.py:CarryPlan.apply": "into a candidate pair that nobody hosts yet",
        "description/checks.py:check_start": "on data of its own, to see what overlaps",
        "engine/backends.py": "the name of a backend in a table, nothing is called",
        "engine/trace.py:_step_and_count": "on data of its own, made there, to count calls",
        "state/kinematics.py:PresentKinematics.of": "from the live data onto data of its own",
    },
    "queues_are_bounded": {
        "env/core.py:EnvCore.__init__": "call_soon refuses more than SOON_LIMIT entries",
        "env/turns.py:Turns.__init__": "a thread waits once, so there is an entry per thread",
        "env/manual.py:ManualSteps.__init__": "_enqueue refuses more than QUEUE_LIMIT requests",
        "locking.py:_FairLock.__init__": "a thread waits once, so there is an entry per thread",
    },
    "waits_have_a_deadline": {
        "callbacks/route.py:Route._hook": "Port.acquire counts its users, it waits for none",
        "callbacks/router.py:Router._hold": "Port.acquire counts its users, it waits for none",
        "engine/callback_scopes.py:CallbackScope._take": "Port.acquire counts its users",
        "env/environment.py:MujocoEnv.__init__": "engine_log.acquire counts its users",
        "env/manual.py:acquire_while_alive": "in pieces of 0.2 s, while the process lives",
        "env/manual.py:ManualSteps._acquire": "as Holding.__enter__; see locking.py",
        "env/stepping.py:Stepper._run_hooked": "as OrderedLock.__enter__; see locking.py",
        "env/turns.py:Turns._wait": "takes a lock that was made in the line before",
        "fanout.py:Subscription.__iter__": "a loop over items lasts until the source is closed",
        "env/pacing.py:Waker.__init__": "takes a lock that was made in the line before",
        "locking.py:_Waiter.__init__": "takes a lock that was made in the line before",
        "locking.py:Holding.__enter__": (
            "waits for the holders before it, each bounded by a slice or one operation; in pieces "
            "of 0.2 s that Ctrl-C ends"
        ),
        "locking.py:OrderedLock.__enter__": "as Holding.__enter__; the order forbids a deadlock",
        "plugins/host.py:PluginHost.acquire_scoped_access": (
            "waits for the hook under way, as quiescing must; in pieces of 0.2 s that Ctrl-C ends"
        ),
        "plugins/host.py:PluginHost._exclusively": (
            "a set is never destroyed under a hook that runs, however long; Ctrl-C ends the wait"
        ),
    },
    "functions_are_short": {
        "env/hooks.py:hooked_step_of": "one closure on purpose: each call saved is felt per step",
        "env/shortcut.py:hooked_single_step_of": "the same, with both locks inlined",
        "env/shortcut.py:single_step_of": "the same, with one lock inlined",
    },
    "error_messages_are_lower_case_without_full_stop": {
        "plugins/typed_config.py:_fields": "Config is the name of the attribute, not a word",
    },
}
