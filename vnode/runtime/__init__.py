"""What an agent runs on: work queues, controllers, the leader, links to targets, servers."""
