"""For pytest-xdist: deals the tests out two at a time, in their order. By itself it hands a process
dozens, and one that has the long ones among them is at work when the others have ended."""


def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScheduling

    class Dealing(LoadScheduling):
        def _send_tests(self, node, num):
            # One that runs, and the next one: a process tears down only what that does not need.
            super()._send_tests(node, min(num, 2))
    return Dealing(config, log)
